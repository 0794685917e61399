// What whoever helps from afar needs to know of this process, in one archive: version, settings, state, metrics, the last lines of the log, and
// a CPU profile when asked for. No secrets: fields by their names, texts by their form, and whatever the process knows to be one.

import { gzipSync } from 'node:zlib'
import { type AdminRoute, TEXT } from '../../admin/route.ts'
import type { AdminState, MetricsText } from '../../admin/routes.ts'
import { REDACTED, redact, redactText } from '../../core/identity/redact.ts'
import { type TarFile, tarOf } from '../../core/text/tar.ts'
import type { ClusterTable } from '../../state/clusters.ts'
import type { Config } from '../config/config.ts'
import type { Profiles } from './profiles.ts'

export interface SupportBundleDeps {
  readonly config: Config
  readonly clusters: ClusterTable
  readonly version: Readonly<Record<string, unknown>>
  readonly describe: AdminState['describe']
  readonly metrics: MetricsText
  /** The last lines of the log, each with its end. */
  recentLog(): string
  readonly profiles: Profiles
  /** What the process knows beside the credentials of clusters: tokens of files. */
  secrets(): readonly string[]
}

const LONGEST_PROFILE_SECONDS = 60
/** Shorter ones are words, and would tear holes into everything. */
const LEAST_SECRET = 8

export function supportBundleRoute(deps: SupportBundleDeps): AdminRoute {
  return {
    path: '/debug/support-bundle',
    method: 'GET',
    access: 'admin',
    async answer({ query }) {
      const text = query.get('profile') ?? '0'
      const seconds = /^\d{1,2}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY
      if (seconds > LONGEST_PROFILE_SECONDS) {
        const body = `profile is not a number of seconds from 0 to ${LONGEST_PROFILE_SECONDS}\n`
        return { code: 400, contentType: TEXT, body }
      }
      const files = await bundleFiles(deps, seconds)
      const headers = { 'content-disposition': 'attachment; filename="portcullis-support.tar.gz"' }
      const body = gzipSync(tarOf(files, Date.now() / 1000))
      return { code: 200, contentType: 'application/gzip', body, headers }
    },
  }
}

async function bundleFiles(deps: SupportBundleDeps, seconds: number): Promise<readonly TarFile[]> {
  const { config, version, describe, metrics, recentLog, profiles } = deps
  const profile = seconds === 0 ? [] : ((await profiles.take('cpu', seconds)) ?? [])
  const json = (value: unknown): string => `${JSON.stringify(redact(value), null, 2)}\n`
  const files = [
    { name: 'version.json', text: json(version) },
    { name: 'settings.json', text: json(config) },
    { name: 'state.json', text: json(await describe()) },
    { name: 'metrics.txt', text: redactText(await metrics.text()) },
    { name: 'log.txt', text: redactText(recentLog()) },
    ...profile,
  ]
  const secrets = knownSecrets(deps)
  return files.map(({ name, text }) => ({ name, text: secrets.reduce(without, text) }))
}

function without(text: string, secret: string): string {
  return text.replaceAll(secret, REDACTED)
}

/** As they are, and in base64. */
function knownSecrets({ clusters, secrets }: SupportBundleDeps): readonly string[] {
  const plain = new Set(secrets())
  for (const { compiled } of clusters.values()) {
    const { client, serving } = compiled
    for (const secret of [client.bearerToken, client.key, serving.key]) plain.add(secret)
  }
  const long = [...plain].filter((secret) => secret.length >= LEAST_SECRET)
  return long.flatMap((secret) => [secret, Buffer.from(secret).toString('base64').replace(/=+$/, '')])
}
