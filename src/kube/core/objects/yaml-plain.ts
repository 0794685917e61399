// YAML that every library reads in the same way. kube-apiserver reads YAML 1.1 with Go's library, the gateway with another one: where
// they differ, what the gateway has checked would not be what kube-apiserver does.

import { isUtf8 } from 'node:buffer'

/**
 * Directives, anchors, aliases, tags and merges (`<<`, whose precedence differs between versions of Go's library). Then what only Go's
 * library takes for the end of a line, and so of a comment (U+000D alone, U+0085, U+2028, U+2029), or skips (U+FEFF).
 */
const AMBIGUOUS = /<<|[&*!\u0085\u2028\u2029\ufeff]|\r(?!\n)|^%/m

/** Clients send nothing else. In time linear to the body, which is not JSON. */
export function isPlainYaml(body: Buffer): boolean {
  // Go's library also reads UTF-16, which can at the same time be a text of another meaning.
  return isUtf8(body) && !AMBIGUOUS.test(body.toString('utf8'))
}
