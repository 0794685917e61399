// Requests, errors, refusals and 99th percentile of the last half hour. Drawn by uPlot, in the page's colours.

import type { VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { RING_STEPS, type Series, STEP_SECONDS } from '../../api/overview.ts'
import { clock, count, latency } from '../data/format.ts'

/** Seconds shown, even if there is less data. */
const WINDOW = (RING_STEPS - 1) * STEP_SECONDS

export function Chart({ series, label }: { readonly series: Series; readonly label: string }): VNode {
  const holder = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot | undefined>(undefined)
  const latest = useRef(series)
  latest.current = series
  useEffect(() => {
    const { current: at } = holder
    if (at === null) return undefined
    const draw = (): void => {
      chart.current?.destroy()
      chart.current = new uPlot(optionsOf(at), dataOf(latest.current), at)
    }
    draw()
    const resized = new ResizeObserver(() => chart.current?.setSize(sizeOf(at)))
    resized.observe(at)
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', draw)
    addEventListener('themechange', draw)
    return () => {
      resized.disconnect()
      dark.removeEventListener('change', draw)
      removeEventListener('themechange', draw)
      chart.current?.destroy()
    }
  }, [])
  useEffect(() => chart.current?.setData(dataOf(series)), [series])
  const last = series.requests.length - 1
  const summary = `${label}: ${count(series.requests[last] ?? 0)} requests, ${count(series.errors[last] ?? 0)} errors, ${count(series.refused[last] ?? 0)} refused a second, 99 % within ${latency(series.p99[last] ?? null)}`
  return <div class="chart" ref={holder} role="img" aria-label={summary} />
}

/** A canvas does not resolve variables or light-dark(), so the browser computes the colour. */
function colourOf(at: HTMLElement, name: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${name})`
  at.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

function dataOf({ endsAt, stepSeconds, requests, errors, refused, p99 }: Series): uPlot.AlignedData {
  const first = endsAt / 1000 - (requests.length - 1) * stepSeconds
  return [requests.map((_, i) => first + i * stepSeconds), [...requests], [...errors], [...refused], [...p99]]
}

/** Height of the legend below. */
const LEGEND = 30

function sizeOf(at: HTMLElement): { width: number; height: number } {
  return { width: Math.max(at.clientWidth, 200), height: Math.max(at.clientHeight - LEGEND, 120) }
}

function optionsOf(at: HTMLElement): uPlot.Options {
  const style = getComputedStyle(at)
  const text = style.color
  const colour = (name: string): string => colourOf(at, name)
  const font = `11px ${style.fontFamily}`
  const axis = { stroke: text, font, grid: { stroke: colour('--chart-grid'), width: 1 }, ticks: { show: false } }
  const rate = (_: uPlot, value: number | null): string => (value === null ? '–' : `${count(value)}/s`)
  return {
    ...sizeOf(at),
    padding: [8, 4, 0, 0],
    cursor: { points: { size: 5 } },
    legend: { live: true },
    scales: {
      x: { time: true, range: (_, __, last) => [last - WINDOW, last] },
      y: { range: (_, __, most) => [0, Math.max(most * 1.1, 1)] },
      ms: { range: (_, __, most) => [0, Math.max(most * 1.1, 10)] },
    },
    axes: [
      { ...axis, values: (_, splits) => splits.map((at) => clock(at * 1000).slice(0, 5)) },
      { ...axis, size: 46, values: (_, splits) => splits.map((value) => count(value)) },
      { ...axis, scale: 'ms', side: 1, size: 52, grid: { show: false }, values: (_, splits) => splits.map(latency) },
    ],
    series: [
      { label: 'Time', value: (_, at) => (at === null ? '–' : clock(at * 1000)) },
      {
        label: 'Requests',
        stroke: colour('--chart-requests'),
        fill: colour('--chart-fill'),
        width: 1.5,
        value: rate,
        points: { show: false },
      },
      { label: 'Errors', stroke: colour('--chart-errors'), width: 1.5, value: rate, points: { show: false } },
      {
        label: 'Refused',
        stroke: colour('--chart-refused'),
        width: 1.5,
        dash: [6, 3],
        value: rate,
        points: { show: false },
      },
      {
        label: '99 % within',
        scale: 'ms',
        stroke: colour('--chart-latency'),
        width: 1,
        dash: [2, 2],
        value: (_, value) => latency(value),
        points: { show: false },
      },
    ],
  }
}
