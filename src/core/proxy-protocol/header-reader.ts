// What the readers of both versions have in common.

/** What the sender says of the connection that it took over. Canonical addresses. */
export interface DeclaredEnds {
  readonly sourceAddress: string
  readonly sourcePort: number
  readonly destinationAddress: string
  readonly destinationPort: number
}

/** One byte of the header. @returns undefined = there are more; a text = invalid */
export interface HeaderReader {
  next(byte: number): undefined | string | { readonly ends: DeclaredEnds | undefined }
}
