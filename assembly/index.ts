// The ABI: every export of the kernels, and nothing else.
export { reserve, seal } from "./memory";
export { exp, log, sigmoid, tanh } from "./math/elementwise";
