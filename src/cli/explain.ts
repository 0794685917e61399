// `portcullis explain`: what the gateway would do with one request, or with every line of an access log.

import { buildClusterIndex, type ClusterIndex } from '../gateway/core/cluster/cluster-index.ts'
import {
  type ExplainInput,
  type ExplainOutput,
  explainRequest,
  parseExplainLine,
} from '../gateway/core/explain/explain-request.ts'
import { readServedClusters, type ServedClustersOptions } from './client/served-clusters.ts'
export interface ExplainOptions extends ServedClustersOptions {
  /** Read JSON lines from `input` instead of `request`. */
  stdin: boolean
  request?: ExplainInput
  /** Output format for a single request; lines are always answered in JSON. */
  output: 'text' | 'json'
  /** Lines of standard input. */
  input: AsyncIterable<string>
  /** Milliseconds since the epoch. */
  now: () => number
}

/** Output of many lines is written in chunks of about this many characters. */
const CHUNK_LENGTH = 64 * 1024

/** @returns the exit code: 1 if no object loads, a line is malformed, or there is no request */
export async function explain(options: ExplainOptions): Promise<number> {
  // A readline interface drops lines that arrive before it has a listener, so listen before the first await.
  const lines = options.stdin ? options.input[Symbol.asyncIterator]() : undefined
  const served = await readServedClusters(options)
  if (served === undefined) return 1
  for (const problem of served.problems) options.err(`${problem}\n`)
  if (served.clusters.size === 0) {
    options.err(`no UpstreamCluster could be loaded from ${served.where}\n`)
    return 1
  }
  const index = buildClusterIndex([...served.clusters.values()])
  if (lines !== undefined) return await explainLines(lines, options, index)
  if (options.request === undefined) {
    options.err('no request given: name a method and a target, or use --stdin\n')
    return 1
  }
  const result = explainRequest(index, options.request, options.now())
  options.out(options.output === 'json' ? `${JSON.stringify(result)}\n` : formatExplanation(options.request, result))
  return 0
}

/** One line out for each line in, in the same order; blank lines are skipped. */
async function explainLines(
  lines: AsyncIterator<string>,
  options: ExplainOptions,
  index: ClusterIndex,
): Promise<number> {
  const output = new LineOutput(options.out)
  let code = 0
  let number = 0
  for await (const line of { [Symbol.asyncIterator]: () => lines }) {
    number++
    if (line.trim() === '') continue
    const input = parseExplainLine(line)
    if ('error' in input) {
      output.write({ error: `line ${number}: ${input.error}` })
      code = 1
    } else {
      output.write(explainRequest(index, input, options.now()))
    }
  }
  output.flush()
  return code
}

const DECISIONS: Readonly<Record<ExplainOutput['decision'], (result: ExplainOutput) => string>> = {
  forward: () => 'forward',
  refuse: ({ code, reason }) => `refuse: ${code} ${reason}`,
  answer: () => 'the gateway answers it: the clusters that accept the credential',
}

/** For display: one fact per line, aligned. */
function formatExplanation(input: ExplainInput, result: ExplainOutput): string {
  const rows: [string, string][] = [['request', `${input.method} ${input.target}`]]
  if (result.requestInfo !== null) {
    for (const [key, value] of Object.entries(result.requestInfo)) {
      if (value !== '') rows.push([key, String(value)])
    }
  }
  rows.push(['cluster', result.cluster ?? 'none'])
  rows.push(['policy', result.policy === null ? 'none' : `dispatchPolicies[${result.policy}].rules[${result.rule}]`])
  rows.push(['flowControl', result.flowControl ?? 'none'])
  rows.push(['endpoints', result.endpoints.length === 0 ? 'none' : result.endpoints.join(', ')])
  if (result.share !== null) rows.push(['share', `${result.share.source}, weight ${result.share.weight}`])
  rows.push(['decision', DECISIONS[result.decision](result)])
  if (result.message !== '') rows.push(['message', result.message])
  const width = Math.max(...rows.map(([key]) => key.length)) + 2
  return rows.map(([key, value]) => `${key.padEnd(width)}${value}\n`).join('')
}

/** Joins the lines of one turn of the event loop: fast for a file, and still prompt for interactive input. */
class LineOutput {
  readonly #out: (text: string) => void
  #text = ''

  constructor(out: (text: string) => void) {
    this.#out = out
  }

  write(value: ExplainOutput | { readonly error: string }): void {
    if (this.#text === '') setImmediate(() => this.flush())
    this.#text += `${JSON.stringify(value)}\n`
    if (this.#text.length >= CHUNK_LENGTH) this.flush()
  }

  flush(): void {
    if (this.#text === '') return
    const text = this.#text
    this.#text = ''
    this.#out(text)
  }
}
