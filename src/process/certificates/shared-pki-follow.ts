// Follows the shared CAs' Secrets while the gateway runs. Changes are written to the data directory, whose files are followed; unusable ones are
// refused with one log line, and the previous CA stays in force.

import type { Logger } from '../../kit/api/ports.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { refreshCA, type SecretClient } from '../../pki/io/shared-ca.ts'
import type { SharedCA } from '../../pki/io/shared-ca-secret.ts'

/** Interval in milliseconds: each check reads one Secret per CA. */
const LOOK_MS = 30_000

export interface FollowedPki {
  /** Keyed by Secret: whether its content is in force. */
  readonly reloads: ReadonlyMap<string, boolean>
  stop(): void
}

/** @param lookMs default 30 s; jittered by a tenth, so that replicas do not read in sync */
export function followSharedPki(
  client: Pick<SecretClient, 'get'>,
  cas: readonly SharedCA[],
  log: Logger,
  lookMs: number = LOOK_MS,
): FollowedPki {
  const problems = new Map(cas.map(({ name }) => [name, '']))
  let stopped = false
  let timer: NodeJS.Timeout
  const look = async (): Promise<void> => {
    for (const ca of cas) {
      const problem = await refresh(client, ca, log)
      if (stopped) return
      // Its validity is unknown while it cannot be read.
      if (problem === undefined) continue
      const before = problems.get(ca.name)
      if (problem !== '' && problem !== before) {
        log.error('the CA that all replicas share cannot be replaced; the one before stays in force', {
          error: problem,
        })
      }
      problems.set(ca.name, problem)
    }
    timer = later()
  }
  const later = (): NodeJS.Timeout => setTimeout(() => void look(), lookMs * (0.9 + Math.random() / 10)).unref()
  timer = later()
  return {
    get reloads() {
      return new Map([...problems].map(([name, problem]) => [name, problem === '']))
    },
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}

/** Why it is not in force; '' = it is; undefined = unknown. */
async function refresh(client: Pick<SecretClient, 'get'>, ca: SharedCA, log: Logger): Promise<string | undefined> {
  try {
    await refreshCA(client, ca, log)
    return ''
  } catch (error) {
    return error instanceof UserError ? `${error.message}; ${error.fix}` : undefined
  }
}
