// Orders the resourceVersions of a cell. A cell of several clusters has one for each, `east=12;west=7`, which is only comparable with one of
// the same clusters.

import { compareResourceVersions } from '../../../kube/core/objects/resource-version.ts'

const OF_SEVERAL = /^[^=;]+=[0-9]+(;[^=;]+=[0-9]+)+$/

/** @param versions by cluster @returns '' if one of them is unknown */
export function joinVersions(versions: ReadonlyMap<string, string>): string {
  const [first = '', ...others] = versions.values()
  if (others.length === 0) return first
  if ([...versions.values()].includes('')) return ''
  return [...versions].map(([name, version]) => `${name}=${version}`).join(';')
}

/**
 * Negative if `a` is older than `b`, 0 if equal, positive if newer. With several clusters, older if any of them is older.
 * @returns undefined if one is unknown (empty, or not a decimal number), or if they are of different clusters
 */
export function compareVersions(a: string, b: string): number | undefined {
  return compareResourceVersions(a, b) ?? compareSeveral(a, b)
}

function compareSeveral(a: string, b: string): number | undefined {
  if (!OF_SEVERAL.test(a) || !OF_SEVERAL.test(b)) return undefined
  const [left, right] = [partsOf(a), partsOf(b)]
  if (left.size !== right.size) return undefined
  let newest = 0
  for (const [name, version] of left) {
    const order = compareVersions(version, right.get(name) ?? '')
    if (order === undefined || order < 0) return order
    newest = Math.max(newest, order)
  }
  return newest
}

function partsOf(versions: string): Map<string, string> {
  return new Map(
    versions.split(';').map((part): [string, string] => {
      const [name = '', version = ''] = part.split('=')
      return [name, version]
    }),
  )
}

/** The newer of two; '' = unknown, because one of them is. */
export function newerVersion(a: string, b: string): string {
  const order = compareVersions(a, b)
  if (order === undefined) return ''
  return order >= 0 ? a : b
}
