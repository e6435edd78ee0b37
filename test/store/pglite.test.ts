import { openEmbeddedMemoryStore } from "../../src/postgres.js";
import { describeStoreContract } from "./contract.js";

describeStoreContract("embedded PostgreSQL", { open: openEmbeddedMemoryStore });
