// UpstreamClusters of an API server, and which version of each is in force: the last good one; claims go to the current holder, else to the oldest
// object. The cost of a change depends only on what it touches. A version with bytes of a Secret that is no longer released to the cluster is no
// longer good.

import type { FieldError } from '../../../../kit/api/json/field-error.ts'
import type { JsonObject } from '../../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../../kit/api/json/object-shape.ts'
import { compareText } from '../../../../kit/api/json/sorted-json.ts'
import type { PemChecks } from '../../../../kit/api/validation/pem-checks.ts'
import type { ResolvedCluster, SourceError } from '../../../api/resource-source.ts'
import { type ClusterCheckOptions, droppedFields } from '../../../api/upstream-cluster/checks.ts'
import { claimsOf } from '../../../api/upstream-cluster/cluster-conflicts.ts'
import { referencesOf, type SecretReferenceAt } from '../../secrets/secret-references.ts'
import { type CheckedCluster, checkCluster, secretsOf } from './check-cluster.ts'
import { ClusterReferences, type GoodSecrets, goodSecretsOf, type SecretLookup, withGoodSecrets } from './references.ts'
import { ClusterClaims, settleClaims } from './settle-claims.ts'

interface ClusterObjectsOptions {
  readonly secrets: SecretLookup
  readonly pem: PemChecks
  readonly checks?: ClusterCheckOptions
}

interface ClusterSettlement {
  /** Clusters whose version in force has changed: new, updated or removed. */
  readonly changed: ReadonlySet<string>
  /** Clusters whose problems have changed, with the previous ones. */
  readonly reported: ReadonlyMap<string, readonly SourceError[]>
}

interface ClusterEntry {
  readonly name: string
  object: JsonObject
  /** The parts of the object that the checks depend on. */
  state: string
  references: readonly SecretReferenceAt[]
  verdict: CheckedCluster | undefined
  /** The version that should be in force; undefined if there are errors. */
  good: ResolvedCluster | undefined
  /** The last good version, and its Secrets' content. */
  lastGood: GoodVersion | undefined
  /** Secrets read for it: the object's, and those whose bytes are in force. */
  secrets: ReadonlySet<string>
  /** Those that are not released to it. */
  withheld: readonly string[]
  problems: readonly SourceError[]
  conflicts: SourceError[]
}

interface GoodVersion {
  readonly state: string
  readonly secrets: GoodSecrets
  readonly version: ResolvedCluster
}

export class ClusterObjects {
  readonly #references: ClusterReferences
  readonly #pem: PemChecks
  readonly #checks: ClusterCheckOptions
  readonly #entries = new Map<string, ClusterEntry>()
  readonly #inForce = new Map<string, ResolvedCluster>()
  /** Claims of each cluster's good version and of the one in force. */
  readonly #claims = new ClusterClaims()
  /** Clusters to be checked. */
  readonly #unchecked = new Set<string>()
  /** Clusters whose Secrets have not been read yet. */
  readonly #waiting = new Set<string>()
  /** Clusters with problems. */
  readonly #reports = new Map<string, readonly SourceError[]>()

  constructor({ secrets, pem, checks = {} }: ClusterObjectsOptions) {
    this.#references = new ClusterReferences(secrets)
    this.#pem = pem
    this.#checks = { fileReferences: false, ...checks }
  }

  get inForce(): ReadonlyMap<string, ResolvedCluster> {
    return this.#inForce
  }

  /** Whether a cluster waits for a response about a Secret. */
  get isWaiting(): boolean {
    return this.#waiting.size > 0
  }

  get hasWork(): boolean {
    return this.#unchecked.size > 0 || this.#claims.isTouched
  }

  /** Grouped by cluster. */
  get problems(): readonly SourceError[] {
    return [...this.#reports.values()].flat()
  }

  problemsOf(name: string): readonly SourceError[] {
    return this.#reports.get(name) ?? []
  }

  /** Replaces all objects. */
  replace(objects: readonly JsonObject[]): void {
    const names = new Set<string>()
    for (const object of objects) names.add(this.put(object))
    for (const name of [...this.#entries.keys()]) if (!names.has(name)) this.remove(name)
  }

  /**
   * Puts previously good versions in force, for clusters that have none. settle() must not be called until the objects are known; it then keeps each
   * version until its object has a good one, or is gone.
   */
  restore(versions: ReadonlyMap<string, ResolvedCluster>): void {
    for (const [name, version] of versions) {
      if (this.#inForce.has(name)) continue
      this.#inForce.set(name, version)
      this.#claims.touch(name)
      const entry = this.#entries.get(name)
      if (entry !== undefined) this.#reclaim(entry)
      else this.#claims.set(name, claimKeys(version))
    }
  }

  /** Returns its name. An unchanged object is not checked again. */
  put(object: JsonObject): string {
    const name = String(metadataOf(object)['name'] ?? '')
    const state = stateOf(object)
    const known = this.#entries.get(name)
    if (known?.state === state) {
      known.object = object
      return name
    }
    const entry = known ?? this.#newEntry(name, object)
    Object.assign(entry, { object, state, references: referencesOf(object), verdict: undefined })
    this.#entries.set(name, entry)
    this.#readSecrets(entry)
    this.#unchecked.add(name)
    return name
  }

  remove(name: string): void {
    const entry = this.#entries.get(name)
    if (entry === undefined) return
    this.#references.replace(name, entry.secrets, new Set())
    this.#entries.delete(name)
    this.#unchecked.delete(name)
    this.#waiting.delete(name)
    this.#claims.touch(name)
    this.#claims.set(name, [])
  }

  /** The state of these Secrets has changed. */
  secretsChanged(names: readonly string[]): void {
    for (const secret of names) for (const name of this.#references.usersOf(secret)) this.#unchecked.add(name)
  }

  /** Checks one object that needs it; false if none does. */
  checkNext(): boolean {
    const next = this.#unchecked.values().next()
    if (next.done === true) return false
    this.#unchecked.delete(next.value)
    const entry = this.#entries.get(next.value)
    if (entry !== undefined) this.#check(entry)
    return true
  }

  /** Decides what is in force, after all checks. */
  settle(): ClusterSettlement {
    const names = this.#claims.affected()
    const wanted = new Map<string, ResolvedCluster>()
    const before = new Map<string, ResolvedCluster>()
    const members = [...names].flatMap((name) => this.#entries.get(name) ?? []).sort(byAge)
    for (const name of names) {
      const last = this.#inForce.get(name)
      if (last !== undefined && !this.#isWithheld(this.#entries.get(name), last)) before.set(name, last)
    }
    for (const entry of members) {
      entry.conflicts = []
      const version = entry.good ?? before.get(entry.name)
      if (version !== undefined) wanted.set(entry.name, version)
    }
    settleClaims(wanted, before, ({ loser, holder, claim }) => {
      const entry = this.#entries.get(loser)
      if (entry === undefined) return
      const message = `UpstreamCluster ${JSON.stringify(loser)} claims ${claim.what}, which ${JSON.stringify(holder)} has`
      const problem: FieldError = {
        reason: 'FieldValueDuplicate',
        path: claim.path,
        message,
        fix: 'remove it from one of the two',
        severity: 'error',
      }
      entry.conflicts.push(reported(loser, problem))
    })
    return this.#putInForce(names, wanted)
  }

  #putInForce(names: ReadonlySet<string>, wanted: ReadonlyMap<string, ResolvedCluster>): ClusterSettlement {
    const changed = new Set<string>()
    const spoken = new Map<string, readonly SourceError[]>()
    for (const name of names) {
      const version = wanted.get(name)
      if (version !== this.#inForce.get(name)) changed.add(name)
      if (version === undefined) this.#inForce.delete(name)
      else this.#inForce.set(name, version)
      const entry = this.#entries.get(name)
      if (entry === undefined) this.#claims.set(name, [])
      else {
        this.#reclaim(entry)
        this.#readSecrets(entry)
      }
      const problems = entry === undefined ? [] : [...entry.problems, ...entry.conflicts]
      const before = this.problemsOf(name)
      if (JSON.stringify(problems) !== JSON.stringify(before)) spoken.set(name, before)
      if (problems.length === 0) this.#reports.delete(name)
      else this.#reports.set(name, problems)
    }
    this.#claims.settled()
    return { changed, reported: spoken }
  }

  #check(entry: ClusterEntry): void {
    const { name, references } = entry
    entry.withheld = this.#references.withheld(entry.secrets, name)
    const unread = this.#references.unread(references)
    if (unread !== undefined) {
      // The previous version stays; this only shows if a read takes long.
      const message = `${WAITS}${unread.secret}, which could not be read yet`
      const fix = 'nothing, unless this persists: then check that the gateway may read Secrets there (deploy/rbac)'
      const problem: FieldError = { reason: 'FieldValueInvalid', path: unread.path, message, fix, severity: 'warning' }
      this.#waiting.add(name)
      entry.problems = [reported(name, problem)]
      this.#claims.touch(name)
      return
    }
    this.#waiting.delete(name)
    const resolved = this.#references.resolve(entry.object, references)
    const verdict =
      entry.verdict?.secrets === secretsOf(resolved) ? entry.verdict : checkCluster(resolved, this.#pem, this.#checks)
    entry.verdict = verdict
    const unresolved = resolved.problems.some(({ severity }) => severity === 'error')
    const good = unresolved ? undefined : verdict.good
    if (entry.lastGood !== undefined && this.#isWithheld(entry, entry.lastGood.version)) entry.lastGood = undefined
    if (good !== undefined) {
      const secrets = goodSecretsOf(references, resolved)
      entry.lastGood = { state: entry.state, secrets, version: good }
    }
    entry.good = good ?? this.#withLastSecrets(entry)
    const problems = [...resolved.problems, ...verdict.problems, ...droppedFields(entry.object)]
    entry.problems = problems.map((problem) => reported(name, problem))
    this.#claims.touch(name)
    this.#reclaim(entry)
  }

  /** The current object with the bytes of its last good version; undefined if its errors are not only in its Secrets. */
  #withLastSecrets(entry: ClusterEntry): ResolvedCluster | undefined {
    const { lastGood, object, references, state } = entry
    if (lastGood === undefined) return undefined
    const { secrets } = lastGood
    const resolved = withGoodSecrets(object, references, secrets)
    if (resolved === undefined) return undefined
    if (lastGood.state === state) return lastGood.version
    const { good } = checkCluster(resolved, this.#pem, this.#checks)
    if (good !== undefined) entry.lastGood = { state, secrets, version: good }
    return good
  }

  /** Includes Secrets in force: an object that now names another Secret must not hide that one is withheld. */
  #readSecrets(entry: ClusterEntry): void {
    const { secrets = [] } = this.#inForce.get(entry.name) ?? {}
    const wanted = new Set([...entry.references.map(({ secret }) => secret), ...secrets])
    wanted.delete('')
    this.#references.replace(entry.name, entry.secrets, wanted)
    entry.secrets = wanted
  }

  /**
   * Whether a version has bytes of a Secret that its owner does not (or no longer) release to this cluster. If the object names a Secret that was
   * never released to it, the version predates that, and stays.
   */
  #isWithheld(entry: ClusterEntry | undefined, { secrets }: ResolvedCluster): boolean {
    if (entry === undefined || entry.withheld.length === 0) return false
    return secrets === undefined || entry.withheld.some((secret) => secrets.includes(secret))
  }

  #newEntry(name: string, object: JsonObject): ClusterEntry {
    const nothing = { references: [], problems: [] }
    return {
      name,
      object,
      state: '',
      verdict: undefined,
      good: undefined,
      lastGood: undefined,
      secrets: new Set(),
      withheld: [],
      ...nothing,
      conflicts: [],
    }
  }

  #reclaim(entry: ClusterEntry): void {
    const last = this.#inForce.get(entry.name)
    const versions = new Set([entry.good, last].filter((version) => version !== undefined))
    this.#claims.set(entry.name, [...versions].flatMap(claimKeys))
  }
}

function claimKeys({ object }: ResolvedCluster): readonly string[] {
  return claimsOf(object).map(({ key }) => key)
}

const WAITS = 'waits for Secret '

/** Temporary problems that are not logged: every object with a new Secret waits for it at first. */
export function isWaiting({ message }: SourceError): boolean {
  return message.startsWith(WAITS)
}

function reported(cluster: string, problem: FieldError): SourceError {
  return { file: '', line: 0, ...problem, cluster }
}

/** Equal if nothing differs that the checks or the gateway use: status updates do not change it. */
function stateOf(object: JsonObject): string {
  const { uid, generation, resourceVersion, labels, annotations } = metadataOf(object)
  return JSON.stringify([uid, generation ?? resourceVersion ?? object, labels, annotations])
}

/** Oldest first: by creationTimestamp (seconds), then by name. */
function byAge(a: ClusterEntry, b: ClusterEntry): number {
  return compareText(createdAt(a.object), createdAt(b.object)) || compareText(a.name, b.name)
}

function createdAt(object: JsonObject): string {
  return String(metadataOf(object)['creationTimestamp'] ?? '')
}

function metadataOf({ metadata }: JsonObject): Readonly<Record<string, unknown>> {
  return recordOf(metadata)
}
