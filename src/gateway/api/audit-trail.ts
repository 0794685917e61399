// What is recorded of one request because an audit policy says so.

/** Sees the bodies as they pass; it never changes or delays them, and must not keep a chunk. */
export interface AuditTrail {
  requestBody(chunk: Buffer): void
  responseBody(chunk: Buffer): void
}
