/** How each telephone system says who it is; Twilio by its own library. */
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

/** `url` is the WebSocket's. */
export const twilioHeaders = (url: string): Record<string, string> => ({
  "x-twilio-signature": twilio.getExpectedTwilioSignature(authToken, url, {}),
});
