// Ten minutes of chaos through a gateway that caches every resource of a cluster: kube-controller-manager, kube-scheduler, client-go's reflectors in three
// encodings with the inconsistency detector, and kubectl, while kube-apiservers are killed, etcd is compacted, the gateway starts again, and rights are
// taken and given back. In the end the reflectors have what etcd has, and each change was seen once.

import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { assertNothingLost, CacheChaos } from '../harness/informers/cache-chaos.ts'

const ROUNDS = 10
/** At least so long: components write, and bookmarks come, in between. */
const ROUND_MS = 60_000
/** Both kube-apiservers at once: nothing has a history any more. */
const BOTH = 5

test('ten rounds: no change is lost or doubled, and all stores equal etcd', {
  timeout: 45 * 60_000,
}, async (t) => {
  const chaos = await CacheChaos.start()
  t.after(() => chaos.stop())
  for (let round = 1; round <= ROUNDS; round++) {
    const over = sleep(ROUND_MS)
    if (round === BOTH) await chaos.killApiservers(0, 1)
    else await chaos.killApiservers(round % 2)
    await chaos.compact()
    await chaos.restartGateway(round % 2 === 0 ? 'SIGTERM' : 'SIGKILL')
    if (round % 3 === 0) await chaos.takeAndGiveRights()
    await chaos.synced()
    await over
    t.diagnostic(`round ${round}: ${chaos.writes} writes`)
  }
  await assertNothingLost(chaos, (what) => t.diagnostic(what))
})
