// What an API server sent is not what it has to be.

/** Bytes of an object, a list or an event that cannot be read. The message says why, for the log; it contains nothing of the bytes. */
export class MalformedError extends Error {
  override readonly name = 'MalformedError'
}

export function malformed(reason: string): MalformedError {
  return new MalformedError(reason)
}

/** undefined = it cannot be written: what upstream sent is malformed, or says something for which the form has no words. */
export function writable<T>(write: () => T): T | undefined {
  try {
    return write()
  } catch (error) {
    if (error instanceof MalformedError) return undefined
    throw error
  }
}
