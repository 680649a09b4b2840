export { SignInOverlay } from './SignInOverlay'
export { SignInPage } from './SignInPage'
