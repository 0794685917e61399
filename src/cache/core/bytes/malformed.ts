// What an API server sent is not what it has to be.

/** Bytes of an object, a list or an event that cannot be read. The message says why, for the log; it contains nothing of the bytes. */
export class MalformedError extends Error {
  override readonly name = 'MalformedError'
}

export function malformed(reason: string): MalformedError {
  return new MalformedError(reason)
}
