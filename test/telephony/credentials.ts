/** How each telephone system authenticates; Twilio's signature is made by its own library. */
import twilio from "twilio";
import { authToken } from "../../campaign/parts/telephone-credentials.mjs";

export {
  apiKey,
  audioHookHeaders,
  authToken,
  basic,
  basicHeader,
  clientSecret,
} from "../../campaign/parts/telephone-credentials.mjs";

/** `url` is that of the WebSocket. */
export const twilioHeaders = (url: string): Record<string, string> => ({
  "x-twilio-signature": twilio.getExpectedTwilioSignature(authToken, url, {}),
});
