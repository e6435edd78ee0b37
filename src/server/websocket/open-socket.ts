/**
 * A connected WebSocket, as far as its handlers use it. The public types name this instead of the type of `ws`, so that users need not
 * install `@types/ws`.
 */
export interface OpenSocket {
  readonly readyState: number;
  readonly OPEN: number;
  send(data: string | Uint8Array): void;
  close(code?: number): void;
  /** Cuts the connection off. */
  terminate(): void;
  pause(): void;
  resume(): void;
  on(event: "message", listener: (data: Buffer, isBinary: boolean) => void): unknown;
  on(event: "close", listener: () => void): unknown;
  once(event: "message" | "close", listener: () => void): unknown;
}
