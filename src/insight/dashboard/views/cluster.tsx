// One cluster in full, with the commands that change it: the dashboard itself is read-only.

import type { ComponentChildren, VNode } from 'preact'
import type { ProtectorRow } from '../../../gateway/api/pod-protection-in-force.ts'
import type { CachedRow, ClusterPage, EndpointRow, LimitRow } from '../../api/cluster-page.ts'
import { byteCount, count, instant, latency, plural, roundedDuration, share, whole } from '../data/format.ts'
import { useNow, usePoll } from '../data/poll.ts'
import { shellLine } from '../data/shell.ts'
import { Banner } from '../parts/banner.tsx'
import { Changes } from '../parts/changes.tsx'
import { Chart } from '../parts/chart.tsx'
import { Command } from '../parts/command.tsx'
import { Nothing, Pane, Table } from '../parts/pane.tsx'
import { State, type Tone, Troubles } from '../parts/state.tsx'
import { SwitchLine } from '../parts/switch.tsx'
import { TopClients } from '../parts/top-clients.tsx'

export function ClusterView({ name }: { readonly name: string }): VNode {
  const polled = usePoll<ClusterPage>(`/api/v1/clusters/${encodeURIComponent(name)}?replicas=all`)
  const { data } = polled
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href="#/">Overview</a> / <span aria-current="page">{name}</span>
      </nav>
      <Banner polled={polled} missing={data?.missing ?? []} />
      {data === undefined ? (
        <>
          <h1>{name}</h1>
          <Nothing>{polled.fault === '' ? 'Loading …' : ''}</Nothing>
        </>
      ) : (
        <Page page={data} />
      )}
    </>
  )
}

function Page({ page }: { readonly page: ClusterPage }): VNode {
  const { tile } = page
  return (
    <>
      <section class="summary" aria-labelledby="name">
        <div class="verdict">
          <h1 id="name">{tile.name}</h1>
          <p class="troubles">
            <Troubles troubles={tile.troubles} />
          </p>
          <dl class="figures">
            <Figure name="requests/s">{count(tile.requestsPerSecond)}</Figure>
            <Figure name="errors">{share(tile.errorRatio)}</Figure>
            <Figure name="refused">{share(tile.refusedRatio)}</Figure>
            <Figure name="p99">
              {latency(tile.p99)} <small>p50 {latency(tile.p50)}</small>
            </Figure>
            <Figure name="in flight">{whole(tile.inFlight)}</Figure>
            <Figure name="watches">{whole(tile.watches)}</Figure>
          </dl>
          {page.credentialFault !== '' && (
            <p>
              <State tone="bad">upstream refuses the gateway: {page.credentialFault}</State>
            </p>
          )}
        </div>
        <Chart series={page.series} label={tile.name} />
      </section>
      <div class="columns even">
        <div>
          <Switch page={page} />
          <Endpoints endpoints={page.endpoints} />
          <Policies page={page} />
          <Limits page={page} />
          <ReadCache page={page} />
        </div>
        <aside aria-label="Activity">
          <Pane id="changes" title="Changes and Events" note="last 30 minutes">
            <Changes changes={page.changes} withCluster={false} />
          </Pane>
          <Refusals page={page} />
          <TopClients cluster={tile.name} />
          <Protection page={page} />
          <Rest page={page} />
        </aside>
      </div>
    </>
  )
}

function Figure({ name, children }: { readonly name: string; readonly children: ComponentChildren }): VNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function Switch({ page }: { readonly page: ClusterPage }): VNode {
  const { name, degrade } = page.tile
  const set = (mode: string): string =>
    shellLine('portcullis', 'degrade', name, '--mode', mode, '--reason', 'say why', '--ttl', '30m')
  return (
    <Pane id="switch" title="Degrade switch">
      {degrade === null ? <State tone="good">Off: everything passes</State> : <SwitchLine degrade={degrade} />}
      <div class="commands">
        {degrade === null ? (
          <>
            <Command does="Evictions and deletions of pods stop" line={set('NoDisruption')} />
            <Command does="Only reads pass" line={set('ReadOnly')} />
          </>
        ) : (
          <>
            <Command does="Return to Off step by step" line={shellLine('portcullis', 'degrade', name, '--recover')} />
            <Command does="Switch it off at once" line={shellLine('portcullis', 'degrade', name, '--mode', 'Off')} />
          </>
        )}
        <Command does="See where it is in force" line={shellLine('portcullis', 'degrade', name, '--status')} />
      </div>
    </Pane>
  )
}

const ENDPOINT_TONES: Readonly<Record<EndpointRow['state'], Tone>> = {
  up: 'good',
  down: 'bad',
  ejected: 'warn',
  disabled: 'neutral',
  unknown: 'neutral',
  backup: 'neutral',
}

function Endpoints({ endpoints }: { readonly endpoints: readonly EndpointRow[] }): VNode {
  const up = endpoints.filter(({ state }) => state === 'up').length
  return (
    <Pane id="endpoints" title="Endpoints" note={`${up} of ${endpoints.length} up`}>
      <Table label="Endpoints" head={['Endpoint', 'State', '#req/s', '#errors/s', '#in flight', '#weight']}>
        {endpoints.map((one) => (
          <tr key={one.url}>
            <th scope="row" class="mono">
              {one.url}
            </th>
            <td>
              <State tone={ENDPOINT_TONES[one.state]}>{one.state}</State>
              {one.message !== '' && <span class="meta"> {one.message}</span>}
            </td>
            <td class="number">{count(one.requestsPerSecond)}</td>
            <td class="number">{count(one.errorsPerSecond)}</td>
            <td class="number">{whole(one.inFlight)}</td>
            <td class="number">{one.weight}</td>
          </tr>
        ))}
      </Table>
    </Pane>
  )
}

function Policies({ page }: { readonly page: ClusterPage }): VNode {
  return (
    <Pane id="policies" title="Policies" note="the first that matches decides">
      <Table label="Dispatch policies" head={['#No.', 'Matches', 'Action', 'Limit', '#req/s', '#hits']}>
        {page.policies.map((one) => (
          <tr key={one.index}>
            <th scope="row" class="number">
              {one.index}
            </th>
            <td>{one.matches}</td>
            <td>{one.action === 'allow' ? one.strategy : <State tone="warn">{one.action}</State>}</td>
            <td>{one.limit === '' ? '–' : one.limit}</td>
            <td class="number">{count(one.perSecond)}</td>
            <td class="number">{whole(one.hits)}</td>
          </tr>
        ))}
      </Table>
    </Pane>
  )
}

function Limits({ page }: { readonly page: ClusterPage }): VNode {
  const { limits, tile } = page
  return (
    <Pane id="limits" title="Limits">
      {limits.length === 0 ? (
        <Nothing>The cluster has no limits.</Nothing>
      ) : (
        <>
          <Table
            label="Flow control schemas"
            head={['Limit', 'Size', 'Fill', '#in flight', '#users', '#admitted/s', '#refused/s']}
          >
            {limits.map((one) => (
              <tr key={one.name}>
                <th scope="row">
                  {one.name} {one.shadow && <span class="tag">shadow</span>}
                </th>
                <td>
                  {one.size}
                  {one.perUser && <span class="meta"> per user</span>}
                </td>
                <td>
                  <Fill limit={one} />
                </td>
                <td class="number">{whole(one.inFlight)}</td>
                <td class="number">{one.perUser ? whole(one.users) : '–'}</td>
                <td class="number">{count(one.admittedPerSecond)}</td>
                <td class="number">{count(one.rejectedPerSecond)}</td>
              </tr>
            ))}
          </Table>
          <div class="commands">
            <LimitCommand cluster={tile.name} limits={limits} />
          </div>
        </>
      )}
    </Pane>
  )
}

/** Doubles the limit that refuses most; the patch fails if the list has changed in the meantime. */
function LimitCommand({ cluster, limits }: { readonly cluster: string; readonly limits: readonly LimitRow[] }): VNode {
  const [busiest] = limits
    .filter(({ change }) => change !== null)
    .sort((a, b) => b.rejectedPerSecond - a.rejectedPerSecond)
  const edit = shellLine('kubectl', 'edit', 'upstreamcluster', cluster)
  if (busiest?.change == null) return <Command does="Change the limits" line={edit} />
  const { index, name, change } = busiest
  const at = `/spec/flowControl/flowControlSchemas/${index}`
  const patch = [
    { op: 'test', path: `${at}/name`, value: name },
    { op: 'replace', path: `${at}/${change.path}`, value: change.value * 2 },
  ]
  return (
    <Command
      does={`Double ${name} (${change.path}: ${change.value} → ${change.value * 2})`}
      line={shellLine('kubectl', 'patch', 'upstreamcluster', cluster, '--type', 'json', '-p', JSON.stringify(patch))}
    />
  )
}

function Fill({ limit }: { readonly limit: LimitRow }): VNode {
  const { fill } = limit
  if (fill === null) return <span class="meta">–</span>
  return (
    <span class="fill">
      <meter min={0} max={1} high={0.8} optimum={0} low={0.8} value={fill} aria-label={`${limit.name} is filled`}>
        {share(fill)}
      </meter>{' '}
      {share(fill)}
    </span>
  )
}

const CACHE_TONES: Readonly<Partial<Record<CachedRow['state'], Tone>>> = {
  Serving: 'good',
  Loading: 'neutral',
  Stale: 'warn',
}

function ReadCache({ page }: { readonly page: ClusterPage }): VNode | null {
  const { cached } = page
  if (cached.length === 0) return null
  const hits = cached.reduce((sum, one) => sum + one.hits, 0)
  const all = hits + cached.reduce((sum, one) => sum + passed(one), 0)
  return (
    <Pane
      id="read-cache"
      title="Read cache"
      note={all === 0 ? 'no reads yet' : `${share(hits / all)} of its reads are hits`}
    >
      <Table
        label="Cached resources"
        head={['Resource', 'State', '#hits', '#forwarded', 'Mostly', '#objects', '#memory', '#age']}
      >
        {cached.map((one) => (
          <tr key={`${one.resource} ${one.version}`}>
            <th scope="row">
              {one.resource} <span class="meta">{one.version}</span>
            </th>
            <td>
              <State tone={CACHE_TONES[one.state] ?? 'bad'}>{one.state}</State>
              {one.message !== '' && <span class="meta"> {one.message}</span>}
            </td>
            <td class="number">{whole(one.hits)}</td>
            <td class="number">{whole(passed(one))}</td>
            <td>{one.passes[0]?.reason ?? '–'}</td>
            <td class="number">{whole(one.objects)}</td>
            <td class="number">{byteCount(one.bytes)}</td>
            <td class="number">{one.ageSeconds === null ? '–' : roundedDuration(one.ageSeconds * 1000)}</td>
          </tr>
        ))}
      </Table>
    </Pane>
  )
}

function passed({ passes }: CachedRow): number {
  return passes.reduce((sum, { count: more }) => sum + more, 0)
}

function Refusals({ page }: { readonly page: ClusterPage }): VNode {
  return (
    <Pane id="refusals" title="Refused" note="last 5 minutes">
      {page.refusals.length === 0 ? (
        <Nothing>Nothing is refused.</Nothing>
      ) : (
        <Table label="Refusals" head={['Reason', 'Rule', '#code', '#/s', '#count']}>
          {page.refusals.map((one) => (
            <tr key={`${one.reason} ${one.rule}`}>
              <th scope="row">{one.reason}</th>
              <td>{one.rule === '' ? '–' : one.rule}</td>
              <td class="number">{one.code}</td>
              <td class="number">{count(one.perSecond)}</td>
              <td class="number">{whole(one.count)}</td>
            </tr>
          ))}
        </Table>
      )}
    </Pane>
  )
}

function Protection({ page }: { readonly page: ClusterPage }): VNode | null {
  const { protection, tile } = page
  if (protection === null) return null
  const { protectors, omitted, state, message, cell, shadow } = protection
  return (
    <Pane id="protection" title="Pod protection" note={`cell ${cell}${shadow ? ', shadow' : ''}`}>
      <p>
        <State tone={state === 'Broken' ? 'bad' : state === 'Starting' ? 'neutral' : 'good'}>
          {state} {message}
        </State>
      </p>
      {protectors.length === 0 ? (
        <Nothing>No PodProtector has pods here.</Nothing>
      ) : (
        <Table
          label="PodProtectors"
          head={['PodProtector', '#available', '#minimum', '#pending', '#may go', 'Must stay']}
        >
          {protectors.map((one) => (
            <Protector key={`${one.namespace}/${one.name}`} row={one} />
          ))}
        </Table>
      )}
      {omitted > 0 && <Nothing>and {whole(omitted)} more</Nothing>}
      <div class="commands">
        {protectors.slice(0, 1).map(({ namespace, name }) => (
          <Command
            key={name}
            does="The numbers of a PodProtector, cell by cell"
            line={shellLine('portcullis', 'protect', 'status', name, '-n', namespace)}
          />
        ))}
        {protectors
          .filter(({ stuck }) => stuck.length > 0)
          .slice(0, 1)
          .map(({ namespace, stuck: [pod = ''] }) => (
            <Command
              key={pod}
              does="Why a pod cannot be deleted"
              line={shellLine('portcullis', 'protect', 'why', pod, '-n', namespace, '--cluster', tile.name)}
            />
          ))}
        <Command
          does={shadow ? 'Refuse again' : 'Only count, refuse nothing'}
          line={shellLine('portcullis', 'protect', 'dry-run', shadow ? 'off' : 'on', tile.name)}
        />
      </div>
    </Pane>
  )
}

function Protector({ row }: { readonly row: ProtectorRow }): VNode {
  return (
    <tr>
      <th scope="row">
        {row.namespace}/{row.name}
        {row.fault !== '' && (
          <>
            {' '}
            <State tone="bad">{row.fault}</State>
          </>
        )}
      </th>
      <td class="number">{row.available}</td>
      <td class="number">{row.minAvailable}</td>
      <td class="number">{row.pending}</td>
      <td class="number">{row.mayGo}</td>
      <td>
        {row.stuckCount === 0 ? (
          '–'
        ) : (
          <>
            <State tone={row.available < row.minAvailable ? 'bad' : 'warn'}>{plural(row.stuckCount, 'pod')}</State>
            <span class="meta"> {row.stuck.join(', ')}</span>
          </>
        )}
      </td>
    </tr>
  )
}

function Rest({ page }: { readonly page: ClusterPage }): VNode {
  const now = useNow()
  return (
    <Pane id="rest" title="Names and certificates">
      <p class="meta">{page.hosts.join(', ')}</p>
      <ul class="rows">
        {page.certificates.map(({ certificate, endsAt }) => (
          <li key={certificate}>
            <span class="what">{certificate}</span>
            <span title={instant(endsAt)}>
              {endsAt <= now ? <State tone="bad">expired</State> : `expires in ${roundedDuration(endsAt - now)}`}
            </span>
          </li>
        ))}
      </ul>
      {page.problems.map(({ severity, message }, i) => (
        <p key={`${i} ${message}`}>
          <State tone={severity === 'error' ? 'bad' : 'warn'}>{message}</State>
        </p>
      ))}
    </Pane>
  )
}
