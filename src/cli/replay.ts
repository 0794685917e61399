// `portcullis replay`: what another configuration would have done with the requests of an access log.

import { buildClusterIndex } from '../gateway/core/cluster/cluster-index.ts'
import { compileCluster } from '../gateway/core/cluster/compile-cluster.ts'
import type { CompiledCluster } from '../gateway/core/cluster/compiled-cluster.ts'
import type { LimitTotal } from '../gateway/core/replay/limit-totals.ts'
import { type LogEntry, parseLogEntry } from '../gateway/core/replay/log-entry.ts'
import { compare, isEvaluable, outcomeOfLog, outcomeText } from '../gateway/core/replay/outcome.ts'
import { Simulation } from '../gateway/core/replay/simulation.ts'
import { isLong, type Ordered, StartOrder } from '../gateway/core/replay/start-order.ts'
import { type ChangeGroup, ReplaySummarizer, type ReplaySummary } from '../gateway/core/replay/summary.ts'
import { loadWithoutSecrets } from '../gateway/io/sources/files/source.ts'
import { FlowTable } from '../gateway/state/flow-tables.ts'
import { UserError } from '../kit/api/validation/field-errors.ts'
import { printable, safeJson } from '../kit/core/text/printable.ts'
import { textTable } from '../kit/core/text/text-table.ts'
import { type LogLine, linesOfFile, numbered } from '../kit/io/logs/log-lines.ts'
import { nodePemChecks } from '../pki/io/pem-checks.ts'
import { readServedClusters, type ServedClustersOptions } from './client/served-clusters.ts'

interface ReplayOptions extends Omit<ServedClustersOptions, 'configDir'> {
  /** Path of the access log; `-` = `input`. */
  readonly log: string
  /** Directory or file of UpstreamClusters. Default: the API server given by kubeconfig and context. */
  readonly config?: string
  /** Directory or file to compare it with. Default: what was done according to the log. */
  readonly compare?: string
  readonly output: 'text' | 'json'
  readonly failOnChange: boolean
  readonly input: AsyncIterable<string>
}

/** @returns the exit code: with failOnChange 2 if a request would get another answer; 1 if nothing could be read */
export async function replay(options: ReplayOptions): Promise<number> {
  const { log, config, output, failOnChange, out } = options
  const simulation = config === undefined ? await simulationOfServer(options) : await simulationOfFiles(config)
  if (simulation === undefined) return 1
  const baseline = options.compare === undefined ? undefined : await simulationOfFiles(options.compare)
  const reading = emptyReading()
  const summarizer = new ReplaySummarizer(baseline === undefined)
  for await (const ordered of readLog(log, options.input, reading)) addTo(summarizer, ordered, simulation, baseline)
  const summary = summarizer.summary()
  out(output === 'json' ? `${safeJson({ log, ...reading, ...summary })}\n` : replayReport(log, reading, summary))
  if (summary.requests === 0) return 1
  return failOnChange && summary.changed > 0 ? 2 : 0
}

function addTo(
  summarizer: ReplaySummarizer,
  ordered: Ordered,
  simulation: Simulation,
  baseline: Simulation | undefined,
): void {
  const { entry, late } = ordered
  if (!isEvaluable(entry)) {
    summarizer.add(entry, late, undefined, '')
    return
  }
  const logged = outcomeOfLog(entry)
  const was = baseline === undefined ? logged : compare(logged, baseline.evaluate(ordered)).wouldBe
  const found = simulation.evaluate(ordered)
  const comparison = compare(was, found)
  const refusedBy = found.refusal?.message ?? found.warnings.join('; ')
  const message = refusedBy === '' ? outcomeText(comparison.wouldBe) : refusedBy
  summarizer.add(entry, late, comparison, message)
}

/** @param path directory or file of UpstreamClusters. @throws {UserError} on any error in it: a broken object would not be in force */
async function simulationOfFiles(path: string): Promise<Simulation> {
  // Secrets don't affect decisions: a pipeline that checks a change need not have them.
  const { clusters, problems } = await loadWithoutSecrets(path, nodePemChecks)
  const error = problems.find(({ severity }) => severity === 'error')
  if (error !== undefined) {
    const where = [error.file, error.path].filter((part) => part !== '').join(': ')
    throw new UserError(`${path}: ${where}: ${error.message}`, error.fix)
  }
  if (clusters.size === 0) throw new UserError(`${path} holds no UpstreamCluster`, 'name a file or directory of some')
  return simulationOf([...clusters.values()].map((cluster) => compileCluster(cluster)))
}

/** Reads the API server that holds the objects. undefined = it can't be read; the error was printed. */
async function simulationOfServer(options: ServedClustersOptions): Promise<Simulation | undefined> {
  const served = await readServedClusters(options)
  if (served === undefined) return undefined
  for (const problem of served.problems) options.err(`${problem}\n`)
  if (served.clusters.size === 0) throw new UserError(`${served.where} has no UpstreamCluster`, served.fixOfNone)
  return simulationOf([...served.clusters.values()])
}

function simulationOf(clusters: readonly CompiledCluster[]): Simulation {
  const local = clusters.map(withLocalLimits)
  const tables = new Map(local.map((cluster) => [cluster, tableOf(cluster)]))
  return new Simulation(buildClusterIndex(local), (cluster) => tables.get(cluster) ?? tableOf(cluster))
}

/** The log is from one replica: its part of a limit shared by replicas is the local one. */
function withLocalLimits(cluster: CompiledCluster): CompiledCluster {
  return { ...cluster, schemas: cluster.schemas.map((schema) => ({ ...schema, shared: undefined })) }
}

function tableOf({ schemas }: CompiledCluster): FlowTable {
  const table = new FlowTable()
  table.update(schemas, 0)
  return table
}

function replayReport(log: string, reading: LogReading, summary: ReplaySummary): string {
  const { requests, from, to, changed, changes, shadowChanged, shadowChanges, limits } = summary
  const lines = [`${log}: ${requests} requests${requests === 0 ? '' : `, from ${from} to ${to}`}`]
  lines.push(...readingLines(reading, summary))
  lines.push(requests === 0 ? '' : `another answer: ${changed} requests${share(changed, requests)}`)
  const text = `${lines.filter((line) => line !== '').join('\n')}\n${limitsText(limits)}${changes.map(groupText).join('')}`
  if (shadowChanged === 0) return text
  const title = `\nin shadow mode, the result would differ for ${shadowChanged} requests${share(shadowChanged, requests)}\n`
  return `${text}${title}${shadowChanges.map(groupText).join('')}`
}

function readingLines(
  { damaged, damagedLines, otherLines }: LogReading,
  { notEvaluated, assumed, late }: ReplaySummary,
): string[] {
  const named = damagedLines.map(({ line, error }) => `${line} (${error})`).join(', ')
  const more = damaged > damagedLines.length ? ', ...' : ''
  return [
    damaged === 0 ? '' : `damaged: ${damaged} lines: ${named}${more}`,
    otherLines === 0 ? '' : `from the gateway's own log: ${otherLines} lines, left out`,
    notEvaluated === 0 ? '' : `refused before it was known who sent them: ${notEvaluated}, taken to be refused again`,
    assumed === 0 ? '' : `also decided by PodProtectors or by the body: ${assumed}, taken to be decided as in the log`,
    late === 0 ? '' : `out of order by more than a minute: ${late}, whose tokens and slots are not counted`,
  ]
}

function limitsText(limits: readonly LimitTotal[]): string {
  if (limits.length === 0) return ''
  const lines = limits.map(({ cluster, limit, refused, wouldRefuse }) => {
    return `  ${printable(`${cluster} ${limit}: refused ${refused}, would refuse about ${wouldRefuse}`)}\n`
  })
  return `limits, as totals: which requests they refuse is compared by --compare only\n${lines.join('')}`
}

function groupText({ cluster, was, wouldBe, requests, users, resources, examples }: ChangeGroup): string {
  const top = (all: ChangeGroup['users']): string => all.map(({ name, requests: n }) => `${name} ${n}`).join(', ')
  const rows = [
    ['users', top(users)],
    ['resources', top(resources)],
    ...examples.map(({ auditID, time, user, method, target, message }, i) => {
      return [i === 0 ? 'examples' : '', `${auditID} ${time} ${user} ${method} ${target}: ${message}`]
    }),
  ]
  const title = `${cluster === '' ? '(no cluster)' : cluster}: ${was} -> ${wouldBe}: ${requests} requests`
  return `\n${printable(title)}\n${textTable(
    rows.map((row) => row.map(printable)),
    '  ',
  )}`
}

function share(part: number, all: number): string {
  return all === 0 || part === 0 ? '' : ` (${Math.max(0.1, Math.round((1000 * part) / all) / 10)} %)`
}

// Reads an access log as requests in order of arrival. A file is read twice: first for the requests that ran longer than the reordering
// window, then for all.

interface LogReading {
  /** Damaged lines: their count, and the numbers and errors of the first ones. */
  damaged: number
  readonly damagedLines: { readonly line: number; readonly error: string }[]
  /** Lines of the gateway's own log, which may go to the same file. */
  otherLines: number
}

/** Damaged lines that are listed. */
const MAX_NAMED = 20
/** Long requests known in advance; further ones come late. */
const MAX_LONG = 50_000
const LATENCY = /"latencyMs":(\d+)/

/** `-` = standard input, which can be read only once: long requests then come late. `reading` is filled along the way. */
async function* readLog(path: string, input: AsyncIterable<string>, reading: LogReading): AsyncGenerator<Ordered> {
  const isFile = path !== '-'
  const order = new StartOrder(isFile ? await longEntries(path) : undefined)
  for await (const line of isFile ? linesOfFile(path) : numbered(input)) {
    const entry = entryOf(line, reading)
    if (entry !== undefined) yield* order.add(entry)
  }
  yield* order.end()
}

function emptyReading(): LogReading {
  return { damaged: 0, damagedLines: [], otherLines: 0 }
}

async function longEntries(path: string): Promise<LogEntry[] | undefined> {
  const long: LogEntry[] = []
  for await (const { text } of linesOfFile(path)) {
    // A regular expression costs a tenth of parsing.
    if (text === undefined || !isLong({ latencyMs: Number(LATENCY.exec(text)?.[1] ?? 0) })) continue
    const entry = parseLogEntry(text)
    if ('error' in entry || !isLong(entry)) continue
    if (long.length >= MAX_LONG) return undefined
    long.push(entry)
  }
  return long
}

function entryOf({ number, text }: LogLine, reading: LogReading): LogEntry | undefined {
  if (text?.trim() === '') return undefined
  const entry = text === undefined ? { error: 'too long' } : parseLogEntry(text)
  if (!('error' in entry)) return entry
  if (text !== undefined && isOwnLog(text)) reading.otherLines++
  else {
    reading.damaged++
    if (reading.damagedLines.length < MAX_NAMED) reading.damagedLines.push({ line: number, error: entry.error })
  }
  return undefined
}

/** As written by src/kit/io/logs/log.ts: a level and a message, and no request. */
function isOwnLog(text: string): boolean {
  return text.startsWith('{') && text.endsWith('}') && text.includes('"level":') && !text.includes('"auditID":')
}
