// What a namespace or a cluster-scoped object of a member is called among those of all members: `MEMBER--NAME`. One that would be too long ends in a hash of
// itself, and has exactly the greatest length, which no other has: a name cannot be chosen so that it is taken for the hash of another one.

import { type HashSeed, NameHash } from '../../../kit/core/text/name-hash.ts'
import { isMemberName, MEMBER_SEPARATOR } from '../../api/upstream-cluster/federation/member-names.ts'

/** merged: names stay as they are. */
export type NameMode = 'prefixed' | 'merged'

export interface MemberName {
  readonly member: string
  /** As the member has it; if it is hashed, the whole prefixed name, for `originalNames`. */
  readonly name: string
  readonly hashed: boolean
}

/** A DNS label (RFC 1123): namespaces have to be one. */
const MAX_NAMESPACE = 63
/** A DNS subdomain: names of most other objects have to be one. */
const MAX_OBJECT_NAME = 253
/** In base 32, of five bits each. */
const HASH_DIGITS = 20
const DIGITS_OF_HALF = 10
const DIGITS = 'abcdefghijklmnopqrstuvwxyz234567'
/** Part of names that clients keep: must never change. Two hashes of 64 bits, of which 50 are used each. */
const SEEDS: readonly HashSeed[] = [
  [0x66656465, 0x72617465],
  [0x6e616d65, 0x73706163],
]

/** For objects that are in no namespace. Namespaces themselves have names as objects in them say: `prefixedNamespace`. */
export function prefixedName(member: string, name: string): string {
  return shortened(`${member}${MEMBER_SEPARATOR}${name}`, MAX_OBJECT_NAME)
}

export function prefixedNamespace(member: string, namespace: string): string {
  return shortened(`${member}${MEMBER_SEPARATOR}${namespace}`, MAX_NAMESPACE)
}

/** @returns undefined: it names no member */
export function splitNamespace(prefixed: string): MemberName | undefined {
  return split(prefixed, MAX_NAMESPACE)
}

export function splitName(prefixed: string): MemberName | undefined {
  return split(prefixed, MAX_OBJECT_NAME)
}

/** What all names begin with that the hashed one may stand for. */
export function startOfOriginals({ member, name: prefixed }: MemberName): string {
  // Without its last character, which may stand for half of one.
  return prefixed.slice(MEMBER_SEPARATOR.length + member.length, prefixed.length - HASH_DIGITS - 2)
}

/**
 * Which of a member's names the hashed one stands for. One who makes both names may find two with one hash, after a long search, but none that has the hash
 * of a name that exists. If there are two, neither is meant.
 * @param candidates names of the member, of namespaces or of objects: at least all that begin with `startOfOriginals`
 */
export function originalNames(hashedName: MemberName, candidates: Iterable<string>): readonly string[] {
  const { member, name: prefixed, hashed } = hashedName
  const start = MEMBER_SEPARATOR.length + member.length
  if (!hashed) return Array.from(candidates).filter((name) => name === prefixed)
  const max = prefixed.length
  const visible = startOfOriginals(hashedName)
  const found: string[] = []
  for (const name of candidates) {
    // Most are not hashed at all.
    if (start + name.length < max || !name.startsWith(visible)) continue
    if (shortened(`${member}${MEMBER_SEPARATOR}${name}`, max) === prefixed) found.push(name)
  }
  return found
}

function split(prefixed: string, max: number): MemberName | undefined {
  const at = prefixed.indexOf(MEMBER_SEPARATOR)
  const member = prefixed.slice(0, Math.max(0, at))
  const name = prefixed.slice(at + MEMBER_SEPARATOR.length)
  if (at <= 0 || name === '' || prefixed.length > max || !isMemberName(member)) return undefined
  const hashed = prefixed.length === max
  return { member, name: hashed ? prefixed : name, hashed }
}

function shortened(name: string, max: number): string {
  if (name.length < max) return name
  return `${withoutHalf(name.slice(0, max - HASH_DIGITS - 1))}-${hashOf(name)}`
}

/** Names of roles may be any text, and half of a character of two code units cannot be written in UTF-8. */
function withoutHalf(start: string): string {
  const last = start.charCodeAt(start.length - 1)
  return last >= 0xd800 && last < 0xdc00 ? `${start.slice(0, -1)}-` : start
}

function hashOf(name: string): string {
  let text = ''
  for (const seed of SEEDS) {
    const hash = new NameHash(seed)
    hash.hash(name)
    let rest = (BigInt(hash.high >>> 0) << 32n) | BigInt(hash.low >>> 0)
    for (let i = 0; i < DIGITS_OF_HALF; i++) {
      text += DIGITS.charAt(Number(rest & 31n))
      rest >>= 5n
    }
  }
  return text
}
