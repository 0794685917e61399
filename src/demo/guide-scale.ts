// What `portcullis demo` prints of scaling: which pods a scale-down deletes, and what protection says to it beforehand.

import { COMMAND } from '../io/program/build.ts'

const CART = `${COMMAND} scale why deployment/cart -n shop --replicas 3 --context prod-alice`

export function scaleGuide(): string {
  return `
Scaling down: which pods of cart go, and by which rule; a deletion cost decides; and those are the ones that go:
  ${CART}
  kubectl annotate --overwrite $(kubectl get pods -l app=cart -o name | tail -n 1) controller.kubernetes.io/pod-deletion-cost=-5
  ${CART}
  kubectl scale deployment cart --replicas 3
The answer named them, too. Of web too many would go: that is known beforehand (exit code 1), and refused where it is written:
  ${COMMAND} scale why deployment/web -n shop --replicas 1 --cluster prod --context portcullis --pod-context prod-alice
  kubectl scale deployment web --replicas 1`
}
