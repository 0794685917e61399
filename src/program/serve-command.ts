// `portcullis serve`: settings, start, ready line, signals, exit code.

import { readFileSync } from 'node:fs'
import process from 'node:process'
import { errorWithFix } from '../kit/api/validation/error-message.ts'
import { formatListenAddress, type ListenAddress } from '../kit/core/listen-address.ts'
import { type Config, ConfigError, loadConfig } from '../process/config/config.ts'
import type { RunningGateway } from './lifecycle/running-gateway.ts'
import { startGateway } from './lifecycle/start-gateway.ts'

/** Resolves with the exit code when the gateway has stopped. */
export async function serveCommand(flags: Record<string, unknown>): Promise<number> {
  const err = (line: string): void => void process.stderr.write(`${line}\n`)
  let config: Config
  try {
    config = loadConfig({ flags, env: process.env, readFile: (path) => readFileSync(path, 'utf8') })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const line of error.message.split('\n')) err(`error: ${line}`)
    return 1
  }
  for (const warning of config.warnings) err(`warning: ${warning}`)
  const stopping = onStopSignal()
  let gateway: RunningGateway
  try {
    gateway = await startGateway(config)
  } catch (error) {
    err(`error: ${errorWithFix(error)}`)
    return 1
  }
  const addresses = config.listen.map((address, i) => openedAddress(address, gateway.ports[i] ?? 0))
  err(readyLine(addresses, gateway, config))
  await stopping.stopped(gateway)
  return 0
}

function openedAddress(address: ListenAddress, port: number): string {
  const text = formatListenAddress({ ...address, port })
  return address.inherited === undefined ? text : `${text} (port ${port})`
}

/** What the user needs right after starting the gateway. */
function readyLine(addresses: readonly string[], gateway: RunningGateway, config: Config): string {
  const { adminPort, healthPort, controlPort, webhookPort, adminKubeconfig } = gateway
  const control = openedAddress(config.controlListen, controlPort)
  const parts = [
    `listening on ${addresses.join(', ')}`,
    `admin on port ${adminPort}`,
    ...(healthPort === 0 ? [] : [`health on port ${healthPort}`]),
    ...(adminKubeconfig === '' ? [] : [`API server on ${control}, its kubeconfig ${adminKubeconfig}`]),
    ...(adminKubeconfig === '' && controlPort !== 0 ? [`webhook for objects on ${control}`] : []),
    ...(webhookPort === 0 ? [] : [`webhook for deletions on port ${webhookPort}`]),
  ]
  return `portcullis is ready: ${parts.join('; ')}`
}

/** Each SIGTERM or SIGINT calls `stop`. Listens from now on: a signal during the start counts, too. */
export function onStopSignal(): { stopped(running: { stop(): Promise<void> }): Promise<void> } {
  let signals = 0
  let stop = (): void => undefined
  const onSignal = (): void => {
    signals++
    stop()
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  return {
    stopped: (running) =>
      new Promise((resolve, reject) => {
        stop = () => void running.stop().then(resolve, reject)
        for (let i = signals; i > 0; i--) stop()
      }),
  }
}
