import { test } from 'node:test'
import { startCluster } from '../harness/cluster.ts'
import { startInProcess } from '../harness/in-process.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../harness/upstream-cluster.ts'
test('smoke', { timeout: 200000 }, async () => {
  const cluster = await startCluster({ apiservers: 2, controllerManager: true, scheduler: true, kwok: true, kubelet: true, nodes: 1 })
  const gw = await startInProcess([upstreamClusterFor(cluster)])
  try {
    const kc = await kubeconfigThrough(gw, cluster, cluster.admin)
    const kp = await kubeconfigThrough(gw, cluster, cluster.admin, { path: true })
    for (const args of [['version'], ['get','nodes'], ['auth','whoami','-o','yaml'], ['create','deployment','web','--image=x'], ['rollout','status','deploy/web','--timeout=40s'], ['exec','deploy/web','--','echo','hi'], ['logs','deploy/web'], ['get','pods','-A','-v=6']]) {
      for (const k of [kc, kp]) { const r = await cluster.kubectl(args, { kubeconfig: k }); console.log(args.join(' '), '=>', r.code, (r.stdout + r.stderr).slice(0, 700)) }
    }
  } finally { console.log(gw.logged.filter(l => l.level !== 'info').slice(0, 20)); await gw.stop(); await cluster.stop() }
})
