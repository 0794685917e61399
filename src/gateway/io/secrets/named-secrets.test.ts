import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FollowEvents, ObjectClient } from '../../../kube/api/object-client.ts'
import { NamedSecrets } from './named-secrets.ts'

test('a list is authoritative, even when the server was restored and its versions went back', async () => {
  let events: FollowEvents | undefined
  const client = {
    list: async () => ({ items: [], resourceVersion: '1' }),
    follow(_kind: unknown, _namespace: unknown, given: FollowEvents) {
      events = given
      return { stop: async () => undefined }
    },
  } as unknown as ObjectClient
  const quiet = (): void => undefined
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
  const secrets = new NamedSecrets({
    client,
    log,
    onChange: quiet,
    refreshMs: 60_000,
    namespace: 'default',
    watched: true,
  })
  secrets.retain('default/a')
  await new Promise((resolve) => setImmediate(resolve))
  const secret = (resourceVersion: string, text: string): Record<string, unknown> => {
    return { metadata: { namespace: 'default', name: 'a', resourceVersion }, stringData: { key: text } }
  }
  const known = (): string => String(secrets.get('default/a').data.get('key'))
  events?.onReplace([secret('200', 'new')])
  assert.equal(known(), 'new')
  // A late event has no effect.
  events?.onChange('MODIFIED', secret('100', 'old'))
  assert.equal(known(), 'new')
  events?.onReplace([secret('100', 'restored')])
  assert.equal(known(), 'restored')
  await secrets.stop()
})
