// JSON of strings that are written often, such as in the lines of logs and in spans: as JSON.stringify would, but faster.

const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

/** A string. */
export function quote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)
}

// What an identity has is one array or map for as long as it is cached; so is its JSON.
const identityCache = new WeakMap<object, string>()

/** Groups or extra fields of an identity; they must not change. */
export function identityJson(value: readonly string[] | Readonly<Record<string, readonly string[]>>): string {
  let json = identityCache.get(value)
  if (json === undefined) {
    json = JSON.stringify(value)
    identityCache.set(value, json)
  }
  return json
}
