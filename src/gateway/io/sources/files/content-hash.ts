// A hash of a text, for entity tags.

import { hash } from 'node:crypto'

/** SHA-512 in upper-case hexadecimal, like kube-apiserver's tags of its documents. */
export function contentHash(bytes: Buffer): string {
  return hash('sha512', bytes, 'hex').toUpperCase()
}
