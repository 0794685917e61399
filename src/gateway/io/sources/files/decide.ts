// Decides what is in force after reading the directory, given what was in force before. The rules:
// - a broken cluster, and everything defined in a broken file, keeps its last good version;
// - if two claim the same name, host, address or port: the current holder keeps it, else the first by file and line;
// - what is gone from the files is removed once the caller says that it has been gone for long enough.

import type { FieldError } from '../../../../kit/api/json/field-error.ts'
import { compareText } from '../../../../kit/api/json/sorted-json.ts'
import type { SourceError } from '../../../api/resource-source.ts'
import { settleClaims } from '../objects/settle-claims.ts'
import type { DirectoryReading } from './load.ts'
import { type FoundCluster, type LoadedCluster, located } from './objects.ts'

export interface FilesDecision {
  readonly clusters: ReadonlyMap<string, LoadedCluster>
  /** Sorted by file and line. */
  readonly problems: readonly SourceError[]
  /** In force in a version that is no longer in the files, because of errors. */
  readonly kept: ReadonlySet<string>
  /** Gone from the files, and only in force because `mayVanish` returned false. */
  readonly vanishing: ReadonlySet<string>
}

export function decideFiles(
  reading: DirectoryReading,
  inForce: ReadonlyMap<string, LoadedCluster>,
  mayVanish: (cluster: string) => boolean,
): FilesDecision {
  const problems = [...reading.problems]
  const owners = chooseOwners(reading.clusters, inForce, problems)
  const clusters = new Map<string, LoadedCluster>()
  const kept = new Set<string>()
  const vanishing = new Set<string>()
  for (const [name, { loaded }] of owners) {
    const last = inForce.get(name)
    if (loaded !== undefined) clusters.set(name, loaded)
    else if (last !== undefined) {
      clusters.set(name, last)
      kept.add(name)
    }
  }
  const unclear = new Set(reading.brokenFiles)
  // A broken cluster with a new name may be an existing one being renamed.
  for (const [name, { loaded, source }] of owners)
    if (loaded === undefined && !inForce.has(name)) unclear.add(source.file)
  for (const [name, last] of inForce) {
    if (owners.has(name)) continue
    if (unclear.has(last.file)) kept.add(name)
    else if (mayVanish(name)) continue
    else vanishing.add(name)
    clusters.set(name, last)
  }
  settleConflicts(clusters, { owners, inForce, vanishing, kept, problems })
  problems.sort((a, b) => compareText(a.file, b.file) || a.line - b.line)
  return { clusters, problems, kept, vanishing }
}

/** Among objects with the same name: the one from the file of the cluster in force, else the first. */
function chooseOwners(
  found: readonly FoundCluster[],
  inForce: ReadonlyMap<string, LoadedCluster>,
  problems: SourceError[],
): ReadonlyMap<string, FoundCluster> {
  const owners = new Map<string, FoundCluster>()
  for (const one of found) {
    const owner = owners.get(one.name)
    const home = inForce.get(one.name)?.file
    if (owner === undefined || (owner.source.file !== home && one.source.file === home)) owners.set(one.name, one)
  }
  for (const one of found) {
    const owner = owners.get(one.name)
    if (owner === undefined || owner === one) continue
    const { file, line } = owner.source
    const message = `UpstreamCluster ${JSON.stringify(one.name)} is defined in ${file}:${line} too`
    problems.push(located(one.source, duplicate('metadata.name', message, 'rename or remove one of the two')))
  }
  return owners
}

interface Circumstances {
  readonly owners: ReadonlyMap<string, FoundCluster>
  readonly inForce: ReadonlyMap<string, LoadedCluster>
  readonly vanishing: ReadonlySet<string>
  readonly kept: Set<string>
  readonly problems: SourceError[]
}

/** Like settleClaims; a lost claim is reported where it is made. */
function settleConflicts(clusters: Map<string, LoadedCluster>, circumstances: Circumstances): void {
  const { owners, inForce, vanishing, kept, problems } = circumstances
  settleClaims(clusters, inForce, ({ loser, holder, claim }, held, fallsBack) => {
    if (fallsBack) kept.add(loser)
    const source = owners.get(loser)?.source
    // Whatever is about to be removed will give way in a moment: not an error.
    if (source === undefined || vanishing.has(holder)) return
    const { file = '', line = 0 } = held ?? {}
    const message = `UpstreamCluster ${JSON.stringify(loser)} claims ${claim.what}, which ${JSON.stringify(holder)} (${file}:${line}) has`
    problems.push(located(source, duplicate(claim.path, message, 'remove it from one of the two')))
  })
}

function duplicate(path: string, message: string, fix: string): FieldError {
  return { reason: 'FieldValueDuplicate', path, message, fix, severity: 'error' }
}
