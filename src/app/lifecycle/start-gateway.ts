// Starts a gateway from its settings.

import { limitFollowedBytes } from '../../io/kube/followed-bytes.ts'
import { type LineWriter, openLineWriter } from '../../io/logs/line-writer.ts'
import { createLogger } from '../../io/logs/log.ts'
import { RecentLines } from '../../io/logs/recent-lines.ts'
import type { Config } from '../config/config.ts'
import { logMemoryPlan, planMemory } from '../memory/memory-plan.ts'
import { assemble } from './assemble.ts'
import { buildParts } from './build-parts.ts'
import { checkStart, claimStore } from './check-start.ts'
import type { GatewayOverrides, RunningGateway } from './running-gateway.ts'

const STDERR = 2

/** @throws {UserError} with one clear line for what the operator can fix */
export async function startGateway(asked: Config, given: Partial<GatewayOverrides> = {}): Promise<RunningGateway> {
  const outlets = new AsyncDisposableStack()
  try {
    const recent = new RecentLines(given.logLines ?? closedBy(outlets, openLineWriter(STDERR)))
    const log = given.log ?? createLogger({ level: asked.logLevel, destination: recent })
    const memory = planMemory(asked)
    const { config } = memory
    logMemoryPlan(memory, log)
    limitFollowedBytes(config.maxFollowedBytes)
    await checkStart(config, log)
    const lock = given.source === undefined ? claimStore(config) : undefined
    outlets.defer(() => lock?.release())
    await using begun = new AsyncDisposableStack()
    const start = assemble(await buildParts({ memory, log, recent, given, lock, outlets, begun }))
    // From here on they are components, which stop together.
    begun.move()
    return await start()
  } catch (error) {
    // What cannot be closed must not hide why the start has failed.
    await outlets.disposeAsync().catch(() => undefined)
    throw error instanceof SuppressedError ? error.suppressed : error
  }
}

function closedBy(outlets: AsyncDisposableStack, writer: LineWriter): LineWriter {
  return outlets.adopt(writer, () => writer.close())
}
