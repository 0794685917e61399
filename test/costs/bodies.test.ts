import { checkCosts } from './check-costs.ts'
import { BODIES } from './table.ts'

checkCosts(BODIES)
