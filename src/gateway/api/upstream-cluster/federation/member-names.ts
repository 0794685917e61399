// What a member of spec.members may be called: its name stands in front of namespaces and names of objects.

/** Between the name of a member and that of a namespace or an object. Members have none in their names, so the first one ends it. */
export const MEMBER_SEPARATOR = '--'
/** `MEMBER--NAMESPACE` is a DNS label of 63 characters: this leaves room for a hash of the namespace. */
export const MAX_MEMBER_NAME = 32
const LABEL = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/

export function isMemberName(name: string): boolean {
  return name.length <= MAX_MEMBER_NAME && !name.includes(MEMBER_SEPARATOR) && LABEL.test(name)
}
