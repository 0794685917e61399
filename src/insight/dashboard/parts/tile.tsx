// A cluster at a glance.

import type { VNode } from 'preact'
import type { ClusterTile } from '../../api/overview.ts'
import { count, latency, share } from '../data/format.ts'
import { clusterLink } from '../data/route.ts'
import { Troubles, toneOf } from './state.tsx'
import { SwitchLine } from './switch.tsx'

export function Tile({ tile }: { readonly tile: ClusterTile }): VNode {
  const { name, troubles, endpoints, degrade } = tile
  const is = (trouble: (typeof troubles)[number]): string => (troubles.includes(trouble) ? 'hurts' : '')
  return (
    <li class={`tile ${toneOf(troubles)}`}>
      <div class="head">
        <h3>
          <a href={clusterLink(name)}>{name}</a>
        </h3>
        <div class="troubles">
          <Troubles troubles={troubles} />
        </div>
      </div>
      <dl>
        <Figure name="req/s" value={count(tile.requestsPerSecond)} />
        <Figure name="errors" value={share(tile.errorRatio)} class={is('errors')} />
        <Figure name="refused" value={share(tile.refusedRatio)} class={is('refused')} />
        <Figure name="p99" value={latency(tile.p99)} class={is('slow')} />
        <Figure
          name="endpoints"
          value={`${endpoints.up}/${endpoints.all}`}
          class={endpoints.up < endpoints.all ? 'hurts' : ''}
        />
      </dl>
      {degrade !== null && <SwitchLine degrade={degrade} />}
      <Spark values={tile.spark} />
    </li>
  )
}

function Figure(props: { readonly name: string; readonly value: string; readonly class?: string }): VNode {
  return (
    <div class={props.class ?? ''}>
      <dt>{props.name}</dt>
      <dd>{props.value}</dd>
    </div>
  )
}

// A sparkline without axes; the number itself is beside it.
const WIDTH = 120
const HEIGHT = 24

function Spark({ values }: { readonly values: readonly number[] }): VNode {
  const most = Math.max(...values, 1e-9)
  const step = WIDTH / Math.max(values.length - 1, 1)
  const points = values.map(
    (value, i) => `${(i * step).toFixed(1)} ${(HEIGHT - 1 - (value / most) * (HEIGHT - 3)).toFixed(1)}`,
  )
  if (!values.some((value) => value > 0)) return <svg class="spark" aria-hidden="true" />
  const line = `M${points.join('L')}`
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      {points.length > 1 && <path class="area" d={`${line}L${WIDTH} ${HEIGHT}L0 ${HEIGHT}Z`} />}
      {points.length > 1 && <path class="line" d={line} />}
    </svg>
  )
}
