// The order in which API servers list objects: that of the bytes of their keys in etcd.

/** @param namespace '' = cluster-scoped */
export function objectKey(namespace: string, name: string): string {
  return namespace === '' ? name : `${namespace}/${name}`
}

const FIRST_SURROGATE = 0xd800
const LAST_SURROGATE = 0xdfff

/**
 * By the bytes of their UTF-8: `a-b/x` is in front of `a/x`. Names are ASCII, but those of roles may be anything, and JavaScript would put
 * characters of two code units in front of some of one.
 */
export function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const left = a.charCodeAt(at)
    const right = b.charCodeAt(at)
    if (left !== right)
      return isSurrogate(left) === isSurrogate(right) || left < FIRST_SURROGATE || right < FIRST_SURROGATE
        ? left - right
        : right - left
  }
  return a.length - b.length
}

function isSurrogate(unit: number): boolean {
  return unit >= FIRST_SURROGATE && unit <= LAST_SURROGATE
}
