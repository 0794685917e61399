// One round of what test/long/read-cache-chaos.test.ts does for ten minutes.

import { test } from 'node:test'
import { assertNothingLost, CacheChaos } from '../harness/informers/cache-chaos.ts'
import { PATIENT } from '../harness/patience.ts'

test(
  'one kube-apiserver is killed, etcd compacted, the gateway killed, rights taken and given: no change is lost or doubled',
  PATIENT,
  async (t) => {
    const chaos = await CacheChaos.start()
    t.after(() => chaos.stop())
    await chaos.killApiservers(0)
    await chaos.compact()
    await chaos.takeAndGiveRights()
    await chaos.restartGateway('SIGKILL')
    await chaos.synced()
    await chaos.killApiservers(1)
    await assertNothingLost(chaos, (what) => t.diagnostic(what))
  },
)
