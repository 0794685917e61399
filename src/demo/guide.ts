// Output of `portcullis demo`: what is running, and lines to copy and paste.

import { COMMAND } from '../kit/io/program/build.ts'
import type { DemoBackend } from './clusters.ts'
import { type ProtectedService, protectionGuide } from './guide-protection.ts'
import type { Kubectl } from './kubectl.ts'
import { type DemoLogin, loginGuide } from './login/demo-login.ts'
import { DEMO_TOKENS } from './traffic.ts'

export interface GuideFacts {
  readonly dir: string
  /** Absolute, so that it works in every directory. */
  readonly kubeconfig: string
  readonly origin: string
  readonly adminPort: number
  readonly backends: readonly DemoBackend[]
  readonly service: ProtectedService
  readonly login: DemoLogin | undefined
  readonly kubectl: Kubectl
}

/** Sections in the order to try them; without a kubectl, first those that need none. */
export function demoGuide(facts: GuideFacts): string {
  const { kubectl, login, adminPort } = facts
  const head = [introduction(facts), `  export KUBECONFIG=${facts.kubeconfig}${pathTo(kubectl)}`]
  const withKubectl = [
    objects(facts),
    degradeSwitch(facts),
    RECOVERY,
    protection(facts),
    scaleGuide(),
    lookAround(facts),
    cachedReads(facts),
    FEDERATION_GUIDE,
  ]
  const without = [byCurl(facts), explained(facts)]
  const last = [
    ownUser(facts),
    loginGuide(login, adminPort),
    whoAsks(facts),
    observed(facts),
    '\nCtrl-C stops everything.\n',
  ]
  if (kubectl.where !== 'nowhere') return [...head, ...withKubectl, ...without, ...last].join('\n')
  return [...head, NO_KUBECTL, degradeByCurl(facts), ...without, ...withKubectl, ...last].join('\n')
}

const NO_KUBECTL = `
There is no kubectl on this machine. Get it from https://kubernetes.io/docs/tasks/tools/, or run \`npm test\`, which builds one
that the next \`npm start\` finds. These commands work without it:`

function pathTo(kubectl: Kubectl): string {
  if (kubectl.where !== 'folder') return ''
  return `\n  export PATH="${kubectl.folder}:$PATH"       the kubectl that the tests have built, because there is none on your PATH`
}

function introduction({ origin, backends }: GuideFacts): string {
  const running = backends.map(({ name, endpoints }) => `  ${name.padEnd(10)}${endpoints.join('  ')}`)
  return `
Portcullis is ready on ${origin}, in front of
${running.join('\n')}
Simulated clients send two dozen requests a second: kubelets, controllers, people, and a ci-bot that sends too many.
First set this, for all commands below:`
}

function objects({ dir }: GuideFacts): string {
  return `
The clusters are objects in the gateway's own API server. Edit them: a change takes effect at once, an invalid one is refused:
  kubectl --context portcullis edit uc prod
  kubectl --context portcullis get uc -o wide --watch
  kubectl --context portcullis explain uc.spec.degrade
To undo your changes:
  kubectl --context portcullis apply --server-side --force-conflicts -f ${dir}/objects/prod.yaml`
}

function degrade(what: string): string {
  return `${COMMAND} degrade prod ${what} --context portcullis`
}

const FREEZE = degrade("--mode Freeze --reason 'incident 4711: etcd is being restored' --ttl 10m --force")

function degradeSwitch({ backends }: GuideFacts): string {
  // Heartbeats of real clusters don't pass through the gateway.
  const heartbeats = backends.some(({ nodes }) => nodes.length > 0)
  const frozen = heartbeats ? ';\nafter twenty seconds without heartbeats the nodes of prod are NotReady' : ''
  const beating = heartbeats ? ' (the nodes come back)' : ''
  const staying = heartbeats ? ' (the nodes stay Ready)' : ''
  return `
The degrade switch. Freeze prod: alice is refused and told why; staging and the admin's reserved lane keep working${frozen}:
  ${FREEZE}
  ${degrade('--status')}
  kubectl get pods
  kubectl --context prod-admin get nodes
Then allow only heartbeats${beating}; then also reads${staying}; then everything, this time with kubectl:
  ${degrade("--mode HeartbeatsOnly --reason 'incident 4711: nodes first'")}
  ${degrade("--mode ReadOnly --reason 'incident 4711: reads are safe'")}
  kubectl --context portcullis patch uc prod --type merge -p '{"spec":{"degrade":{"mode":"Off"}}}'`
}

/** Short, so that it can be watched: by default a mode is held for a minute, and Limited for ten. */
const RECOVERY = `
Or let the leader do it, one mode at a time, each when the checks of the previous one have held; the last command shows its progress:
  ${degrade("--mode HeartbeatsOnly --reason 'incident 4712: nodes first'")}
  ${degrade('--recover --hold 5s --ramp 10s')}
  ${degrade('--status --watch')}`

function degradeByCurl(facts: GuideFacts): string {
  return `
The degrade switch. While prod is frozen, alice is refused and told why:
  ${alice(facts)}
  ${FREEZE}
  alice ${facts.origin}/clusters/prod/api/v1/namespaces/shop/configmaps
  ${degrade('--mode Off')}`
}

function alice({ dir }: GuideFacts): string {
  return `alice() { curl -s --cacert ${dir}/pki/ca.crt -H 'Authorization: Bearer ${DEMO_TOKENS.alice}' "$@"; }`
}

function protection({ service, backends, adminPort }: GuideFacts): string {
  return `\n${protectionGuide(service, backends, `http://127.0.0.1:${adminPort}`).trimEnd()}`
}

function lookAround({ origin }: GuideFacts): string {
  return `
Look around, through the gateway (alice has a token, admin a client certificate):
  kubectl get pods
  kubectl --context staging-alice get deployments
  kubectl --context prod-admin get nodes -o wide
  kubectl auth whoami
  kubectl scale deployment cart --replicas 12
  kubectl get pods --watch
  kubectl --context default-alice get pods         its server is ${origin}, without a cluster`
}

/** kubectl asks for tables, which are forwarded; kube-controller-manager lists as an informer does. */
function cachedReads({ adminPort }: GuideFacts): string {
  return `
The read cache: the gateway keeps the pods and deployments of prod, and answers watches, and reads that accept any age, from memory. Hits,
memory and age are columns of prod, in its status for each resource (written every 30 s at most), and live in top and on the dashboard.
The second command is such a read:
  kubectl --context portcullis get uc prod -o wide
  kubectl get --raw '/api/v1/namespaces/shop/pods?resourceVersion=0'
  kubectl --context portcullis get uc prod -o jsonpath='{.status.cache}'
  ${COMMAND} top --admin http://127.0.0.1:${adminPort} --once --cluster prod`
}

function byCurl(facts: GuideFacts): string {
  const { origin, adminPort } = facts
  const prod = `${origin}/clusters/prod`
  return `
${facts.kubectl.where === 'nowhere' ? 'As alice' : 'Without kubectl'}:
  ${alice(facts)}
  alice ${prod}/api/v1/namespaces/shop/configmaps
The requests of one connection are spread over both apiservers; each has served its share:
  curl -s http://127.0.0.1:${adminPort}/metrics | grep upstream_requests_total
List pods too fast (five a second for each ordinary user; controllers are exempt):
  alice -o /dev/null -w '%{http_code}\\n' '${prod}/api/v1/namespaces/shop/pods?[1-30]' | sort | uniq -c`
}

function explained({ dir }: GuideFacts): string {
  return `
What would the gateway do with a request, and why?
  ${COMMAND} explain --config-dir ${dir}/objects --host prod --user alice GET /api/v1/namespaces/shop/pods
The objects as files, to read and check:
  ${COMMAND} check ${dir}/objects`
}

function ownUser({ dir, origin }: GuideFacts): string {
  return `
Create a user, and lock it out at once, on every replica:
  ${COMMAND} certs client --dir ${dir}/pki --user dora --group developers
  ${COMMAND} kubeconfig prod --context portcullis --server ${origin} --ca-file ${dir}/pki/ca.crt \\
    --user-cert ${dir}/pki/dora.crt --user-key ${dir}/pki/dora.key > ${dir}/dora.kubeconfig
  kubectl --kubeconfig ${dir}/dora.kubeconfig auth whoami
  ${COMMAND} revoke prod --user dora --context portcullis`
}

/** Continues as docs/first-incident.md: with a limit for that client alone. */
function whoAsks({ adminPort }: GuideFacts): string {
  const at = `--admin http://127.0.0.1:${adminPort}`
  return `
Top talkers, refused clients (q quits top), and the requests of ci-bot as they happen; docs/first-incident.md continues from there:
  ${COMMAND} top ${at} --cluster prod
  ${COMMAND} top ${at} --cluster prod --sort refused
  ${COMMAND} tap prod ${at} --user ci-bot --limit 10`
}

function observed({ dir, adminPort }: GuideFacts): string {
  const admin = `http://127.0.0.1:${adminPort}`
  return `
The dashboard, for a browser: which clusters are unhealthy, which clients cause that, what is refused and why:
  ${admin}/

Health, metrics and logs:
  curl -s ${admin}/metrics | grep apiserver_request_total
  curl -s '${admin}/readyz?verbose'
  tail -f ${dir}/access.log
  tail -f ${dir}/gateway.log`
}

// Scaling in the output of `portcullis demo`: which pods a scale-down deletes, and what protection says to it in advance.
const CART = `${COMMAND} scale why deployment/cart -n shop --replicas 3 --context prod-alice`

function scaleGuide(): string {
  return `
Scaling down: which pods of cart will be deleted, and by which rule? Set a deletion cost, and it decides; then scale down:
  ${CART}
  kubectl annotate --overwrite $(kubectl get pods -l app=cart -o name | tail -n 1) controller.kubernetes.io/pod-deletion-cost=-5
  ${CART}
  kubectl scale deployment cart --replicas 3
The answer to kubectl named these pods, too. Scaling web down would delete too many: the first command predicts that (exit code 1), and
the write is refused:
  ${COMMAND} scale why deployment/web -n shop --replicas 1 --cluster prod --context portcullis --pod-context prod-alice
  kubectl scale deployment web --replicas 1`
}

// Federated reads in the output of `portcullis demo`: the pods of both clusters in one list and one watch, while one of the two is away.

/** Its servers take no requests any more: as if it were lost. */
const DISABLED = [0, 1].map((server) => `{"op":"add","path":"/spec/servers/${server}/disabled","value":'$1'}`).join(',')

const FEDERATION_GUIDE: string = `
Clusters that are read as one: the cluster all has the pods and deployments of prod and staging, for users who may read them in both. Run the
third command in another window:
  kubectl --context all get deployments -A
  kubectl --context all get pods -A
  kubectl --context all get pods -A -w --output-watch-events
Take staging away: after some seconds its pods are shown as they were last known, with a Warning that says since when. The watch continues with
prod, and reports no pod as DELETED:
  disable_staging() { kubectl --context portcullis patch uc staging --type json -p '[${DISABLED}]'; }
  disable_staging true
  kubectl --context portcullis wait uc all --for condition=MembersReady=False
  kubectl --context all get pods -A
  kubectl scale deployment checkout --replicas 7
Bring it back: the Warning is gone, and the same watch shows the changes in staging. A write goes to the member that its namespace names:
  disable_staging false
  kubectl --context portcullis wait uc all --for condition=MembersReady
  kubectl --context all get pods -A
  kubectl --context all scale deployment checkout -n staging--shop --replicas 5`
