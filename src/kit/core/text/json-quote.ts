// Faster JSON.stringify for strings that are written often, as in log lines and spans.

const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

/** Quotes a string. */
export function quote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)
}

// An identity's arrays and maps are shared for as long as it is cached; so is their JSON.
const identityCache = new WeakMap<object, string>()

/** Groups or extra fields of an identity; must not be modified. */
export function identityJson(value: readonly string[] | Readonly<Record<string, readonly string[]>>): string {
  let json = identityCache.get(value)
  if (json === undefined) {
    json = JSON.stringify(value)
    identityCache.set(value, json)
  }
  return json
}
