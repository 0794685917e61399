// A real Prometheus of the machine, that scrapes a gateway every second and evaluates deploy/prometheus/rules.yaml without its `for`.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import type { Json } from '../harness/clients/control-client.ts'
import { withFreePorts } from '../harness/ports.ts'
import { type RunningProcess, startProcess } from '../harness/process.ts'

export interface Sample {
  readonly metric: Readonly<Record<string, string>>
  /** The latest; NaN where it has none. */
  readonly value: number
}

export interface Alert {
  readonly state: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

export interface TestPrometheus {
  /** An instant query. @throws when it cannot be parsed, or fails */
  query(expression: string): Promise<readonly Sample[]>
  alerts(): Promise<readonly Alert[]>
  /** GET of its API below /api/v1/: `data` of the answer. @throws with its error */
  get(path: string): Promise<Json>
  log(): string
  stop(): Promise<void>
}

const RULES = join(import.meta.dirname, '../../deploy/prometheus/rules.yaml')

/** @param scrapes scrape_configs @param rules text of the rule file */
export async function startPrometheus(
  scrapes: readonly object[],
  rules: string = promptRules(),
): Promise<TestPrometheus> {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-prometheus-'))
  const rulesFile = join(dir, 'rules.yaml')
  writeFileSync(rulesFile, rules)
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [rulesFile],
    scrape_configs: scrapes,
  }
  writeFileSync(join(dir, 'prometheus.yaml'), stringify(config))
  const start = (port: number): Promise<RunningProcess> =>
    startProcess({
      name: 'prometheus',
      command: 'prometheus',
      args: [
        `--config.file=${join(dir, 'prometheus.yaml')}`,
        `--storage.tsdb.path=${join(dir, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--log.level=warn',
      ],
      logFile: join(dir, 'prometheus.log'),
      ready: async () => (await fetch(`http://127.0.0.1:${port}/-/ready`)).ok,
    })
  const { port, process } = await withFreePorts(1, async ([port = 0]) => ({ port, process: await start(port) }))
  const get = async (path: string): Promise<Json> => {
    const answer: Json = await (await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)).json()
    if (answer.status !== 'success') throw new Error(`${path}: ${answer.error}`)
    return answer.data
  }
  return {
    async query(expression) {
      const data = await get(`query?query=${encodeURIComponent(expression)}`)
      if (data.resultType === 'scalar') return [{ metric: {}, value: Number(data.result[1]) }]
      return data.result.map(({ metric, value }: Json) => ({ metric, value: Number(value?.[1]) }))
    },
    alerts: async () => (await get('alerts')).alerts,
    get,
    log: () => process.log(),
    async stop() {
      await process.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** The rules as they are, but no alert waits. */
export function promptRules(): string {
  return readFileSync(RULES, 'utf8').replaceAll(/^( +)for: .*\n/gm, '')
}
