import "fake-indexeddb/auto";
import { openIndexedDbStore } from "../../src/store/indexeddb/store.js";
import { describeStoreContract } from "./contract.js";
import { newId } from "./fixtures.js";

describeStoreContract("IndexedDB", { open: (options) => openIndexedDbStore(newId("store"), options) });
