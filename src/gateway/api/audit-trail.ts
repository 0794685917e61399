// The audit record of one request that an audit policy selected.

/** Sees the bodies as they pass; never changes or delays them, and must not retain a chunk. */
export interface AuditTrail {
  requestBody(chunk: Buffer): void
  responseBody(chunk: Buffer): void
}
