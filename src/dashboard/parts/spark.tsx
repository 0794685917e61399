// A line without axes, for the shape of a number over time; the number itself stands beside it.

import type { VNode } from 'preact'

const WIDTH = 120
const HEIGHT = 24

export function Spark({ values }: { readonly values: readonly number[] }): VNode {
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
