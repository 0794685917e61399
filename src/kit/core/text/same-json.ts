// Deep equality of JSON values: API servers return fields in their own order.

export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    return a.every((item, index) => sameJson(item, b[index]))
  }
  const keys = keysOf(a)
  if (keys.length !== keysOf(b).length) return false
  return keys.every((key) => Object.hasOwn(b, key) && sameJson(Reflect.get(a, key), Reflect.get(b, key)))
}

/** An undefined field counts as absent, as in JSON. */
function keysOf(object: object): string[] {
  return Object.keys(object).filter((key) => Reflect.get(object, key) !== undefined)
}
