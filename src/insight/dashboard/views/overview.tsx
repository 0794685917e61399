// The first view: troubled clusters, degrade switches, changes, refusals, and expiring certificates.

import { Fragment, type VNode } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Overview, Totals } from '../../api/overview.ts'
import { count, instant, latency, plural, roundedDuration, share, whole } from '../data/format.ts'
import { useNow, usePoll } from '../data/poll.ts'
import { clusterLink } from '../data/route.ts'
import { Banner } from '../parts/banner.tsx'
import { Changes } from '../parts/changes.tsx'
import { Chart } from '../parts/chart.tsx'
import { Nothing, Pane } from '../parts/pane.tsx'
import { State } from '../parts/state.tsx'
import { SwitchLine } from '../parts/switch.tsx'
import { Tile } from '../parts/tile.tsx'
import { TopClients } from '../parts/top-clients.tsx'

interface Choice {
  readonly search: string
  readonly show: 'all' | 'hurting' | 'switched'
  readonly sort: 'worst' | 'name' | 'requests' | 'errors' | 'refused' | 'latency'
  /** Key of a label; '' = not grouped. */
  readonly group: string
  readonly page: number
}

const SEARCH_DELAY_MS = 150

export function OverviewView(): VNode {
  const [choice, setChoice] = useState<Choice>({ search: '', show: 'all', sort: 'worst', group: '', page: 1 })
  const polled = usePoll<Overview>(urlOf(useSettled(choice, SEARCH_DELAY_MS)))
  const { data } = polled
  const choose = (part: Partial<Choice>): void => setChoice((before) => ({ ...before, page: 1, ...part }))
  return (
    <>
      <h1 class="unseen">Overview</h1>
      <Banner polled={polled} missing={data?.missing ?? []} />
      {data === undefined ? (
        <Nothing>{polled.fault === '' ? 'Loading …' : ''}</Nothing>
      ) : (
        <>
          <Summary overview={data} />
          <Jump overview={data} />
          <div class="columns">
            <Clusters overview={data} choice={choice} choose={choose} />
            <aside aria-label="Activity">
              <Switches overview={data} />
              <Pane id="changes" title="Changed" note="last 30 minutes">
                <Changes changes={data.changes} withCluster={true} />
              </Pane>
              <Refusals overview={data} />
              <TopClients cluster="" />
              <Certificates overview={data} />
              <Problems overview={data} />
            </aside>
          </div>
          <Foot overview={data} />
        </>
      )}
    </>
  )
}

function urlOf({ search, show, sort, group, page }: Choice): string {
  return `/api/v1/overview?${new URLSearchParams({ search, show, sort, group, page: String(page), replicas: 'all' })}`
}

/** Debounced value: a search is sent once the user stops typing. */
function useSettled<T>(value: T, afterMs: number): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), afterMs)
    return () => clearTimeout(timer)
  }, [value, afterMs])
  return settled
}

function Summary({ overview }: { readonly overview: Overview }): VNode {
  const { totals } = overview
  return (
    <section class="summary" aria-labelledby="verdict">
      <div class="verdict">
        <h2 id="verdict">
          {totals.hurting === 0 ? (
            <State tone="good">{totals.clusters === 0 ? 'No clusters' : 'All clusters are healthy'}</State>
          ) : (
            <State tone="bad">
              {whole(totals.hurting)} of {plural(totals.clusters, 'cluster')} unhealthy
            </State>
          )}
        </h2>
        {totals.switched > 0 && (
          <p>
            <State tone="warn">{plural(totals.switched, 'cluster')} switched</State>
          </p>
        )}
        <Figures totals={totals} />
      </div>
      <Chart series={totals.series} label="All clusters" />
    </section>
  )
}

/** Narrow screens stack everything: links to the important parts, with counts. */
function Jump({ overview }: { readonly overview: Overview }): VNode {
  const { switches, changes, refusals, certificates, omitted } = overview
  const link = (id: string, word: string, list: readonly unknown[]): VNode => {
    const go = (event: Event): void => {
      event.preventDefault()
      document.getElementById(id)?.scrollIntoView()
      document.getElementById(id)?.focus({ preventScroll: true })
    }
    return (
      <a href={`#${id}`} onClick={go}>
        {word} {whole(list.length + (omitted[id] ?? 0))}
      </a>
    )
  }
  return (
    <nav class="jump" aria-label="On this page">
      {link('switches', 'Switched', switches)}
      {link('changes', 'Changed', changes)}
      {link('refusals', 'Refused', refusals)}
      {link('certificates', 'Certificates', certificates)}
    </nav>
  )
}

function Figures({ totals }: { readonly totals: Totals }): VNode {
  const { requestsPerSecond: all } = totals
  const part = (value: number): string => (all > 0 ? share(value / all) : '')
  const rows: readonly (readonly [string, string, string])[] = [
    ['requests/s', count(all), ''],
    ['errors/s', count(totals.errorsPerSecond), part(totals.errorsPerSecond)],
    ['refused/s', count(totals.refusedPerSecond), part(totals.refusedPerSecond)],
    ['in flight', whole(totals.inFlight), ''],
    ['watches', whole(totals.watches), ''],
    ['p99', latency(totals.series.p99.at(-1) ?? null), ''],
  ]
  return (
    <dl class="figures">
      {rows.map(([name, value, beside]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {value} {beside !== '' && <small>{beside}</small>}
          </dd>
        </div>
      ))}
    </dl>
  )
}

interface ClustersProps {
  readonly overview: Overview
  readonly choice: Choice
  readonly choose: (part: Partial<Choice>) => void
}

function Clusters({ overview, choice, choose }: ClustersProps): VNode {
  const { clusters, matching, totals } = overview
  return (
    <section class="clusters" aria-labelledby="clusters">
      <div class="bar">
        <h2 id="clusters">
          Clusters{' '}
          <small role="status">
            {matching === totals.clusters ? whole(matching) : `${whole(matching)} of ${whole(totals.clusters)}`}
          </small>
        </h2>
        <Chooser labelKeys={overview.labelKeys} choice={choice} choose={choose} />
      </div>
      {clusters.length === 0 ? (
        <Nothing>{totals.clusters === 0 ? 'There are no UpstreamClusters yet.' : 'No cluster matches.'}</Nothing>
      ) : (
        <ul class="tiles">
          {clusters.map((tile, at) => (
            <Fragment key={tile.name}>
              {choice.group !== '' && (at === 0 || clusters[at - 1]?.group !== tile.group) && (
                <GroupHead overview={overview} choice={choice} value={tile.group} />
              )}
              <Tile tile={tile} />
            </Fragment>
          ))}
        </ul>
      )}
      <Pages overview={overview} choose={choose} />
    </section>
  )
}

interface GroupProps extends Pick<ClustersProps, 'overview' | 'choice'> {
  readonly value: string
}

/** The clusters that follow have this value of the label. */
function GroupHead({ overview, choice, value }: GroupProps): VNode {
  const group = overview.groups.find((one) => one.value === value)
  return (
    <li class="group">
      <b>{value === '' ? `without ${choice.group}` : `${choice.group}=${value}`}</b>{' '}
      {group !== undefined && (
        <span class="meta">
          {plural(group.clusters, 'cluster')}, {whole(group.hurting)} unhealthy, {whole(group.switched)} switched
        </span>
      )}
    </li>
  )
}

interface ChooserProps extends Omit<ClustersProps, 'overview'> {
  readonly labelKeys: readonly string[]
}

function Chooser({ labelKeys, choice, choose }: ChooserProps): VNode {
  const search = useRef<HTMLInputElement>(null)
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const { target } = event
      const typing = target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)
      if (event.key !== '/' || typing || event.ctrlKey || event.metaKey || event.altKey) return
      event.preventDefault()
      search.current?.focus()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  return (
    <search class="chooser">
      <input
        ref={search}
        type="search"
        placeholder="Search (press /)"
        aria-label="Search clusters by name"
        maxLength={253}
        value={choice.search}
        onInput={(event) => choose({ search: event.currentTarget.value })}
      />
      <select
        aria-label="Which clusters"
        value={choice.show}
        onChange={(event) => choose({ show: event.currentTarget.value as Choice['show'] })}
      >
        <option value="all">all</option>
        <option value="hurting">unhealthy</option>
        <option value="switched">switched</option>
      </select>
      <select
        aria-label="Order of clusters"
        value={choice.sort}
        onChange={(event) => choose({ sort: event.currentTarget.value as Choice['sort'] })}
      >
        <option value="worst">worst first</option>
        <option value="name">by name</option>
        <option value="requests">by requests</option>
        <option value="errors">by errors</option>
        <option value="refused">by refusals</option>
        <option value="latency">by latency</option>
      </select>
      {labelKeys.length > 0 && (
        <select
          aria-label="Group clusters by label"
          value={choice.group}
          onChange={(event) => choose({ group: event.currentTarget.value })}
        >
          <option value="">not grouped</option>
          {labelKeys.map((key) => (
            <option key={key} value={key}>
              by {key}
            </option>
          ))}
        </select>
      )}
    </search>
  )
}

function Pages({ overview, choose }: Omit<ClustersProps, 'choice'>): VNode | null {
  const { page, pages } = overview
  if (pages <= 1) return null
  return (
    <nav class="pages" aria-label="Pages of clusters">
      <button type="button" disabled={page <= 1} onClick={() => choose({ page: page - 1 })}>
        ← Previous
      </button>
      <span>
        page {whole(page)} of {whole(pages)}
      </span>
      <button type="button" disabled={page >= pages} onClick={() => choose({ page: page + 1 })}>
        Next →
      </button>
    </nav>
  )
}

function More({ overview, list }: { readonly overview: Overview; readonly list: string }): VNode | null {
  const more = overview.omitted[list] ?? 0
  return more === 0 ? null : <p class="nothing">and {whole(more)} more</p>
}

function Switches({ overview }: { readonly overview: Overview }): VNode {
  const { switches } = overview
  return (
    <Pane id="switches" title="Switched">
      {switches.length === 0 ? (
        <Nothing>No cluster is in a degrade mode.</Nothing>
      ) : (
        <ul class="plain">
          {switches.map((one) => (
            <li key={one.cluster}>
              <a href={clusterLink(one.cluster)}>{one.cluster}</a>
              <SwitchLine degrade={one} />
            </li>
          ))}
        </ul>
      )}
      <More overview={overview} list="switches" />
    </Pane>
  )
}

function Refusals({ overview }: { readonly overview: Overview }): VNode {
  const { refusals } = overview
  return (
    <Pane id="refusals" title="Refused" note="last 5 minutes">
      {refusals.length === 0 ? (
        <Nothing>Nothing is refused.</Nothing>
      ) : (
        <ul class="rows">
          {refusals.map((one) => (
            <li key={`${one.cluster} ${one.reason} ${one.rule}`}>
              <span class="what">
                {one.cluster !== '' && <a href={clusterLink(one.cluster)}>{one.cluster}</a>} <b>{one.reason}</b>{' '}
                {one.rule !== '' && <span class="meta">{one.rule}</span>}
              </span>
              <span class="number" title="HTTP status">
                {one.code}
              </span>
              <span class="number">{count(one.perSecond)}/s</span>
              <span class="number">{whole(one.count)}</span>
            </li>
          ))}
        </ul>
      )}
      <More overview={overview} list="refusals" />
    </Pane>
  )
}

function Certificates({ overview }: { readonly overview: Overview }): VNode {
  const now = useNow()
  const { certificates } = overview
  return (
    <Pane id="certificates" title="Certificates" note="that expire within 30 days">
      {certificates.length === 0 ? (
        <Nothing>None.</Nothing>
      ) : (
        <ul class="rows">
          {certificates.map(({ cluster, certificate, endsAt }) => (
            <li key={`${cluster} ${certificate}`}>
              <span class="what">
                {cluster === '' ? 'the gateway' : <a href={clusterLink(cluster)}>{cluster}</a>} {certificate}
              </span>
              <span title={instant(endsAt)}>
                {endsAt <= now ? (
                  <State tone="bad">expired</State>
                ) : (
                  <State tone="warn">in {roundedDuration(endsAt - now)}</State>
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
      <More overview={overview} list="certificates" />
    </Pane>
  )
}

function Problems({ overview }: { readonly overview: Overview }): VNode | null {
  const { problems } = overview
  if (problems.length === 0) return null
  return (
    <Pane id="problems" title="Configuration">
      <ul class="plain">
        {problems.map(({ cluster, severity, message }, i) => (
          <li key={`${i} ${message}`}>
            <State tone={severity === 'error' ? 'bad' : 'warn'}>{severity}</State>{' '}
            {cluster !== '' && <a href={clusterLink(cluster)}>{cluster}</a>} {message}
          </li>
        ))}
      </ul>
      <More overview={overview} list="problems" />
    </Pane>
  )
}

function Foot({ overview }: { readonly overview: Overview }): VNode {
  const { replicas, version, sampledAt } = overview
  return (
    <footer>
      Portcullis {version} · numbers of {plural(replicas.length, 'replica')} ({replicas.join(', ')})
      {sampledAt === 0 && ' · the first sample comes within 10 s'}
    </footer>
  )
}
