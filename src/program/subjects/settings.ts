// Settings that are for subjects which can be left out of the program. Without one, a warning says that they have no effect.

import type { Logger } from '../../kit/api/ports.ts'
import type { Config } from '../../process/config/config.ts'

interface Group {
  readonly flags: string
  /** What the program lacks without the subject. */
  readonly subject: string
  readonly isGiven: (config: Config) => boolean
}

export const GROUPS = {
  protection: {
    flags: '--protection-*',
    subject: 'pod protection',
    isGiven: ({ protection: { listen, kubeconfig, generatorConfigFile } }) =>
      listen !== undefined || kubeconfig !== '' || generatorConfigFile !== '',
  },
  access: {
    flags: '--access-*',
    subject: 'access grants',
    isGiven: ({ accessRequesters, accessApprovers }) => accessRequesters.length + accessApprovers.length > 0,
  },
  sessionRecording: {
    flags: '--session-recording-*',
    subject: 'recordings of sessions',
    isGiven: ({ sessionRecordingDir }) => sessionRecordingDir !== '',
  },
  top: { flags: '--top-metrics', subject: 'insight', isGiven: ({ topMetrics }) => topMetrics.length > 0 },
  tracing: {
    flags: '--tracing-*',
    subject: 'traces',
    isGiven: ({ tracingOtlpEndpoint }) => tracingOtlpEndpoint !== '',
  },
} as const satisfies Readonly<Record<string, Group>>

export type SettingGroup = keyof typeof GROUPS

/** @param groups of the subjects that the program has */
export function warnOfSettings(config: Config, groups: ReadonlySet<string>, log: Logger): void {
  for (const [name, { flags, subject, isGiven }] of Object.entries(GROUPS)) {
    if (groups.has(name) || !isGiven(config)) continue
    log.warn(`${flags} has no effect: this program was built without ${subject}`, { fix: 'use a build that has it' })
  }
}
