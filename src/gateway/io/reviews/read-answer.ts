// What a review was answered with: it was counted as it came, but may be anything.

/** A member of what may be an object; undefined = it is none, or has no such member. */
export function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
