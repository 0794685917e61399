// Starts the process of hostile endpoints, and tells it what to do.

import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { createCA, issueCertificate, type KeyPair } from '../../../src/pki/io/pki.ts'
import { clientPair } from '../../harness/objects/objects.ts'
import { endWithThisProcess, guarded } from '../../harness/process.ts'
import type { EndpointCommand, EndpointReport } from './endpoint-messages.ts'

const PROGRAM = join(import.meta.dirname, 'endpoint.ts')

export class HostileEndpoints {
  /** Issues the endpoints' certificates and those of their clients. */
  readonly ca: KeyPair = createCA({ commonName: 'hostile CA' })
  /** By kind of call. */
  ports: Readonly<Record<string, number>> = {}
  readonly #client = clientPair(this.ca, 'eve', ['dev'])
  readonly #child: ChildProcess
  readonly #reports: AsyncIterator<string>

  static async start(): Promise<HostileEndpoints> {
    const endpoints = new HostileEndpoints()
    const names = { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] }
    const { certPem, keyPem } = issueCertificate(endpoints.ca, { commonName: 'hostile', usage: 'server', ...names })
    const report = await endpoints.#tell({ serve: { cert: certPem, key: keyPem } })
    if ('ports' in report) endpoints.ports = report.ports
    return endpoints
  }

  private constructor() {
    const [command, args] = guarded(process.execPath, [PROGRAM])
    const env = { ...process.env }
    // A child that sees it believes to be a test.
    delete env['NODE_TEST_CONTEXT']
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], env })
    endWithThisProcess(this.#child)
    this.#reports = createInterface({ input: this.#child.stdout ?? process.stdin })[Symbol.asyncIterator]()
  }

  /** @param clusters by kind of call */
  async attack(name: string, clusters: Readonly<Record<string, string>>, gatewayPort: number): Promise<void> {
    await this.#tell({ attack: name, clusters, gateway: gatewayPort, certificate: this.#client })
  }

  /** Hostile answers that have begun, by kind of call. */
  async answered(): Promise<Readonly<Record<string, number>>> {
    const report = await this.#tell({ count: true })
    return 'answered' in report ? report.answered : {}
  }

  /** Answers nothing any more, until the next attack. */
  async calm(): Promise<void> {
    await this.#tell({ stop: true })
  }

  end(): void {
    this.#child.kill('SIGKILL')
  }

  async #tell(command: EndpointCommand): Promise<EndpointReport> {
    this.#child.stdin?.write(`${JSON.stringify(command)}\n`)
    const { value, done } = await this.#reports.next()
    if (done === true) throw new Error('the process of hostile endpoints has ended')
    return JSON.parse(value) as EndpointReport
  }
}
