import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SILENT } from '../../kit/api/ports.ts'
import { type Config, loadConfig } from '../../process/config/config.ts'
import { GROUPS, warnOfSettings } from './settings.ts'
import { SUBJECTS } from './subjects.ts'

const NONE = loadConfig({ flags: { configDir: 'd' }, env: {}, readFile: () => '' })
const GIVEN: Readonly<Record<keyof typeof GROUPS, Partial<Config>>> = {
  protection: { protection: { ...NONE.protection, kubeconfig: 'k' } },
  access: { accessApprovers: ['group:sre'] },
  sessionRecording: { sessionRecordingDir: '/recordings' },
  top: { topMetrics: ['user'] },
  tracing: { tracingOtlpEndpoint: 'http://127.0.0.1:4318' },
}

function warnings(config: Config, groups: Iterable<string>): readonly string[] {
  const warned: string[] = []
  warnOfSettings(config, new Set(groups), { ...SILENT, warn: (message) => void warned.push(message) })
  return warned
}

// That each group has a subject in the whole program, test/repository/leave-out.test.ts says.
test('a group of settings is of one subject', () => {
  const groups = SUBJECTS.flatMap(({ settings }) => settings ?? [])
  assert.equal(new Set(groups).size, groups.length)
})

test('settings of a subject that the program has not are named in a warning; others, and those that are not given, are not', () => {
  assert.deepEqual(warnings(NONE, []), [])
  for (const [name, { flags, subject }] of Object.entries(GROUPS)) {
    const config = { ...NONE, ...Reflect.get(GIVEN, name) }
    assert.deepEqual(warnings(config, []), [`${flags} has no effect: this program was built without ${subject}`])
    assert.deepEqual(warnings(config, [name]), [])
  }
})
