// A hash of a text, for entity tags.

import { hash } from 'node:crypto'

/** SHA-512 in upper-case hexadecimal, as kube-apiserver makes the tags of its documents. */
export function contentHash(bytes: Buffer): string {
  return hash('sha512', bytes, 'hex').toUpperCase()
}
