import { createMemoryStore } from "../../src/store/memory.js";
import { describeStoreContract } from "./contract.js";

describeStoreContract("memory", { open: async (options) => createMemoryStore(options) });
