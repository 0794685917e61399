// The epoch of a vector says which members its slots belong to. It follows from their names in the order of spec.members, so all replicas know it and nothing
// has to be kept for it. A vector with fewer slots than there are members is one from before the last of them joined.

import { type HashSeed, NameHash } from '../../kit/core/text/name-hash.ts'
import { EPOCHS, type VersionVector } from './vectors.ts'

interface SlotMember {
  readonly name: string
  readonly cluster: string
}

/** The same at all replicas, and in all versions of this program. */
const SEED: HashSeed = [0x65706f63, 0x68736565]

export function federationEpoch(members: readonly SlotMember[]): number {
  const hash = new NameHash(SEED)
  // Neither name has a line feed.
  hash.hash(members.map(({ name, cluster }) => `${name}\n${cluster}`).join('\n\n'))
  return (hash.low >>> 0) % EPOCHS
}

/**
 * What a vector says of these members: '' = nothing, because that one has joined since.
 * @returns undefined = it is of others, or in another order: 410
 */
export function versionsOf(
  { epoch, versions }: VersionVector,
  members: readonly SlotMember[],
): readonly string[] | undefined {
  if (versions.length > members.length) return undefined
  if (epoch !== federationEpoch(members.slice(0, versions.length))) return undefined
  return members.map((_, slot) => versions[slot] ?? '')
}
