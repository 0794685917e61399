import { checkCosts } from './check-costs.ts'
import { UPSTREAM } from './table.ts'

checkCosts(UPSTREAM)
