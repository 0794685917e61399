// Reads the response to a review: its size was bounded on arrival, but it may contain anything.

/** A member of a value that may be an object; undefined = it is not, or has no such member. */
export function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
