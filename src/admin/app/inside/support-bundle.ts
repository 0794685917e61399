// Everything remote support needs to know about this process, in one archive: version, settings, state, metrics, the last log lines, and optionally a
// CPU profile. No secrets: fields are redacted by name, texts by pattern, plus all values known to be secret.

import { gzipSync } from 'node:zlib'
import { type TarFile, tarOf } from '../../../kit/core/text/tar.ts'
import type { Config } from '../../../process/config/config.ts'
import { type AdminRoute, PLAIN_TEXT } from '../../io/server/route.ts'
import type { AdminState, MetricsText } from '../../io/server/routes.ts'
import type { Redaction } from './known-secrets.ts'
import type { Profiles } from './profiles.ts'

interface SupportBundleDeps {
  readonly config: Config
  readonly version: Readonly<Record<string, unknown>>
  readonly describe: AdminState['describe']
  readonly metrics: MetricsText
  /** The last log lines, each with its end. */
  recentLog(): string
  readonly profiles: Profiles
  /** Created for each bundle. */
  redaction(): Redaction
}

const LONGEST_PROFILE_SECONDS = 60

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
        return { code: 400, contentType: PLAIN_TEXT, body }
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
  const state = await describe()
  const metricsText = await metrics.text()
  // Last, so that it knows everything in force until now.
  const redaction = deps.redaction()
  const json = (value: unknown): string => `${JSON.stringify(redaction.object(value), null, 2)}\n`
  return [
    { name: 'version.json', text: json(version) },
    { name: 'settings.json', text: json(config) },
    { name: 'state.json', text: json(state) },
    { name: 'metrics.txt', text: redaction.text(metricsText) },
    { name: 'log.txt', text: redaction.text(recentLog()) },
    ...profile.map(({ name, text }) => ({ name, text: redaction.text(text) })),
    { name: 'redaction.json', text: `${JSON.stringify(redaction.report, null, 2)}\n` },
  ]
}
