import { build } from "../../scripts/build.mjs";

export default () => build("library");
