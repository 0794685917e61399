// With --source kubernetes there may be several replicas: clients and API servers verify all of them with the same CA.

import { controlPaths } from '../../gateway/io/listener/control-paths.ts'
import { SERVING_CA_NAME, servingPkiDir } from '../../gateway/io/listener/serving-certificate.ts'
import { OWN_SECRETS } from '../../gateway/io/secrets/secret-release.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { OWN_NAMESPACE } from '../../kube/api/own-names.ts'
import { createKubeClient } from '../../kube/io/client.ts'
import { CONTROL_CA_NAME, TOKEN_KEY_FILE } from '../../pki/io/control-pki.ts'
import { checkTokenKey, generateTokenKey } from '../../pki/io/control-tokens.ts'
import { refreshCA, type SecretClient, shareCA } from '../../pki/io/shared-ca.ts'
import type { SharedCA } from '../../pki/io/shared-ca-secret.ts'
import type { Config } from '../config/config.ts'

/**
 * Call it before anything is created in the data directory. Does nothing if objects are not in a cluster.
 * @param copyWithinMs if this replica has shared them before: how long to wait for the API server before using the copies
 * @throws {UserError}
 */
export async function sharePki(config: Config, log: Logger, copyWithinMs?: number): Promise<void> {
  if (config.source !== 'kubernetes') return
  const { kubeconfig: kubeconfigFile, context } = config
  const client = createKubeClient({ kubeconfigFile, log, ...(context !== '' && { context }) })
  const hasCopy = copyWithinMs !== undefined
  try {
    // One that waits for a response must not delay the other.
    const sharing = sharedCAs(config).map((ca) => () => shareCA(impatient(client, copyWithinMs), ca, log, hasCopy))
    if (hasCopy) await Promise.all(sharing.map((share) => share()))
    else for (const share of sharing) await share()
  } finally {
    const closing = client.close()
    // Closing a connection that is still being opened to a hanging server takes ten seconds.
    if (hasCopy) void closing.catch(() => undefined)
    else await closing
  }
}

/** Whether the gateway creates its own certificate. */
export function makesServingCertificate({ tlsCertFile, tlsPrivateKeyFile }: Config): boolean {
  return tlsCertFile === '' && tlsPrivateKeyFile === ''
}

export function sharedCAs(config: Config): readonly SharedCA[] {
  const { dataDir } = config
  const control: SharedCA = {
    namespace: OWN_NAMESPACE,
    name: OWN_SECRETS.control,
    dir: controlPaths(dataDir).pki,
    commonName: CONTROL_CA_NAME,
    files: { [TOKEN_KEY_FILE]: { make: generateTokenKey, check: checkTokenKey } },
    otherwise: 'write the ca.crt of every replica into the caBundle of the webhooks',
    required: false,
  }
  if (!makesServingCertificate(config)) return [control]
  const serving: SharedCA = {
    namespace: OWN_NAMESPACE,
    name: OWN_SECRETS.serving,
    dir: servingPkiDir(dataDir),
    commonName: SERVING_CA_NAME,
    otherwise: 'give --tls-cert-file and --tls-private-key-file',
    required: true,
  }
  return [serving, control]
}

/** A call does not end before its connection is open or has failed, which a hanging server delays for ten seconds. */
function impatient(client: SecretClient, withinMs: number | undefined): SecretClient {
  if (withinMs === undefined) return client
  return {
    get: (kind, at) => within(client.get(kind, at), withinMs),
    create: (kind, object) => within(client.create(kind, object), withinMs),
  }
}

async function within<T>(call: Promise<T>, ms: number): Promise<T> {
  let late: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    late = setTimeout(() => reject(new Error(`no answer within ${Math.round(ms)} ms`)), ms)
  })
  try {
    return await Promise.race([call, timeout])
  } finally {
    clearTimeout(late)
  }
}

// Follows the shared CAs' Secrets while the gateway runs. Changes are written to the data directory, whose files are followed; unusable ones are
// refused with one log line, and the previous CA stays in force.

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
