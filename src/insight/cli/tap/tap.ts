// `portcullis tap`: requests as they happen, from all threads of all replicas, as rows or as lines of JSON.

import type { AdminClient } from '../../../cli/client/admin-client.ts'
import { type CommandOutput, reportUserErrors } from '../../../cli/command/output.ts'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { formatDuration } from '../../../kit/core/text/duration.ts'
import { printable } from '../../../kit/core/text/printable.ts'
import type { TapLine } from '../../core/tap/tap-lines.ts'
import { readTapQuery, type TapRequest, writeTapQuery } from '../../core/tap/tap-query.ts'
import { TapTable } from './tap-table.ts'

const SHORT: ReadonlyMap<string, string> = new Map([
  ['cj', 'cronjobs'],
  ['cm', 'configmaps'],
  ['crd', 'customresourcedefinitions'],
  ['crds', 'customresourcedefinitions'],
  ['cs', 'componentstatuses'],
  ['csr', 'certificatesigningrequests'],
  ['deploy', 'deployments'],
  ['ds', 'daemonsets'],
  ['ep', 'endpoints'],
  ['ev', 'events'],
  ['hpa', 'horizontalpodautoscalers'],
  ['ing', 'ingresses'],
  ['netpol', 'networkpolicies'],
  ['no', 'nodes'],
  ['ns', 'namespaces'],
  ['pdb', 'poddisruptionbudgets'],
  ['po', 'pods'],
  ['pv', 'persistentvolumes'],
  ['pvc', 'persistentvolumeclaims'],
  ['rs', 'replicasets'],
  ['sa', 'serviceaccounts'],
  ['sc', 'storageclasses'],
  ['sts', 'statefulsets'],
  ['svc', 'services'],
  ['uc', 'upstreamclusters'],
])
const OTHERS = ['secrets', 'jobs', 'leases', 'roles', 'rolebindings', 'clusterroles', 'clusterrolebindings', 'events']
const SINGULAR: ReadonlyMap<string, string> = new Map(
  [...SHORT.values(), ...OTHERS].map((name) => [singularOf(name), name]),
)

/** Unparsed flags; readTapQuery validates them. */
export interface TapFlags {
  readonly clusters: readonly string[]
  readonly selector?: string
  readonly user: readonly string[]
  readonly group: readonly string[]
  readonly userAgent: readonly string[]
  readonly verb: readonly string[]
  readonly resource: readonly string[]
  readonly namespace: readonly string[]
  readonly name: readonly string[]
  readonly path: readonly string[]
  readonly code: readonly string[]
  readonly reason: readonly string[]
  readonly address: readonly string[]
  readonly refused: boolean
  readonly started: boolean
  readonly slow?: string
  readonly maxRps: string
  readonly for: string
  readonly limit?: string
}

export interface TapOptions extends CommandOutput {
  readonly flags: TapFlags
  readonly output: 'table' | 'wide' | 'json'
  /** Creates the client; may throw a UserError. */
  readonly client: () => Pick<AdminClient, 'lines' | 'url'>
  /** Width of the terminal; undefined = none. */
  readonly columns: () => number | undefined
  /** Aborts at Ctrl-C. */
  readonly interrupted: AbortSignal
  readonly now: () => number
}

/** Resolves with the exit code: 0 if the tap ended normally, 1 if a gateway refused or aborted it. */
export function tap(options: TapOptions): Promise<number> {
  return reportUserErrors(options.err, async () => {
    const request = requestOf(options.flags)
    const client = options.client()
    const view = new TapView(options, request)
    const query = writeTapQuery(request)
    query.set('replicas', 'all')
    const lines = client.lines({ path: `/api/v1/tap?${query}`, signal: options.interrupted })
    for await (const line of lines) {
      view.show(line)
      if (view.ended) break
    }
    view.summary()
    if (view.ended || options.interrupted.aborted) return 0
    throw new UserError(`${client.url.origin} has ended the tap`, 'was it restarted? Start the tap again')
  })
}

/** @throws {UserError} with all errors */
function requestOf(flags: TapFlags): TapRequest {
  const { clusters, selector, refused, started, slow, maxRps, limit, for: duration, resource, ...lists } = flags
  const query = new URLSearchParams({ maxRps, for: duration })
  if (selector !== undefined) query.set('selector', selector)
  for (const cluster of clusters) query.append('cluster', cluster)
  for (const one of split(resource)) query.append('resource', fullResourceName(one))
  for (const [name, values] of Object.entries(lists)) {
    for (const value of SPLIT.has(name) ? split(values) : values) query.append(name, value)
  }
  if (refused) query.set('refused', 'true')
  if (started) query.set('started', 'true')
  if (slow !== undefined) query.set('slow', slow)
  if (limit !== undefined) query.set('limit', limit)
  const { request, errors } = readTapQuery(query, flagOf)
  if (request === undefined) throw new UserError(errors.join('; '), 'see portcullis help tap')
  return request
}

/** `--max-rps`; clusters are arguments. */
function flagOf(parameter: string): string {
  return parameter === 'cluster'
    ? parameter
    : `--${parameter.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

/** Names without commas: a flag may list several. */
const SPLIT: ReadonlySet<string> = new Set(['verb', 'namespace', 'code', 'reason'])

function split(values: readonly string[]): readonly string[] {
  return values.flatMap((value) => value.split(','))
}

/** Explains why nothing is shown after this long without a match. */
const QUIET_MS = 9_000

class TapView {
  readonly #options: TapOptions
  readonly #request: TapRequest
  readonly #table: TapTable
  readonly #beganMs: number
  /** By replica. */
  readonly #seen = new Map<string, number>()
  #shown = 0
  #dropped = 0
  #isQuiet = true
  #headed = false
  /** The tap has ended normally. */
  ended = false

  constructor(options: TapOptions, request: TapRequest) {
    this.#options = options
    this.#request = request
    this.#table = new TapTable(options.output === 'wide')
    this.#beganMs = options.now()
  }

  show(text: string): void {
    const { out, output, columns } = this.#options
    const line = parseLine(text)
    // All types, including those unknown to this version: the JSON consumer decides.
    if (output === 'json') out(`${text}\n`)
    if (line === undefined) return
    switch (line.type) {
      case 'start':
        this.#head()
        return
      case 'request':
        this.#shown++
        if (output !== 'json') out(this.#table.row(line, columns()))
        this.ended = this.#shown === this.#request.limit
        return
      case 'dropped':
        this.#dropped += line.count
        this.#tell(`${counted(line.count)} not shown: ${this.#why(line.reason)}`)
        return
      case 'progress':
        this.#progress(line.replica, line.seen)
        return
      case 'missing':
        this.#tell(
          `replica ${printable(line.replica)} is missing: ${printable(line.message)}; the tap continues without it`,
        )
        return
      case 'end':
        this.ended = true
    }
  }

  /** The last line of output. */
  summary(): void {
    if (this.#options.output === 'json') return
    const seconds = Math.round((this.#options.now() - this.#beganMs) / 1000)
    const dropped = this.#dropped === 0 ? '' : `, ${counted(this.#dropped)} not`
    this.#options.err(`${counted(this.#shown)} shown${dropped}, in ${formatDuration(seconds * 1000)}\n`)
  }

  #head(): void {
    const { out, output, columns } = this.#options
    if (this.#headed || output === 'json') return
    this.#headed = true
    out(this.#table.header(columns()))
  }

  /** Reports once that nothing matches, or that there are no requests at all. */
  #progress(replica: string, seen: number): void {
    this.#seen.set(replica, seen)
    if (this.#shown > 0 || !this.#isQuiet || this.#options.now() - this.#beganMs < QUIET_MS) return
    this.#isQuiet = false
    const all = [...this.#seen.values()].reduce((sum, one) => sum + one, 0)
    this.#tell(
      all === 0 ? 'the gateway has had no requests so far' : `${counted(all)} requests so far, none of them matches`,
    )
  }

  #why(reason: string): string {
    return reason === 'rate' ? `above --max-rps ${this.#request.maxRps}` : 'this terminal is slower than the requests'
  }

  /** On standard error, so that a pipe gets only rows; in JSON the line itself carries it. */
  #tell(text: string): void {
    if (this.#options.output !== 'json') this.#options.err(`# ${text}\n`)
  }
}

function counted(count: number): string {
  return count.toLocaleString('en-US')
}

/** undefined = a line unknown to this version. */
function parseLine(text: string): TapLine | undefined {
  try {
    const line: unknown = JSON.parse(text)
    return typeof line === 'object' && line !== null && 'type' in line ? (line as TapLine) : undefined
  } catch {
    return undefined
  }
}

function singularOf(plural: string): string {
  // The only built-in kind whose singular ends with s, too.
  if (plural === 'endpoints') return plural
  if (plural.endsWith('ies')) return `${plural.slice(0, -3)}y`
  return plural.slice(0, /(sses|uses)$/.test(plural) ? -2 : -1)
}

/**
 * Short and singular names of resources as used with kubectl: `-po/log` and `-pod/log` become `-pods/log`; unknown names are unchanged. The gateway
 * has no discovery of its clusters: it compares the plural in paths.
 */
export function fullResourceName(text: string): string {
  const dash = text.startsWith('-') ? '-' : ''
  const name = /^[a-z]+/.exec(text.slice(dash.length))?.[0] ?? ''
  const full = SHORT.get(name) ?? SINGULAR.get(name)
  return full === undefined ? text : `${dash}${full}${text.slice(dash.length + name.length)}`
}
