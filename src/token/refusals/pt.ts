import type { Refusals } from "./en.js";

export const pt: Refusals = {
  formExpired: "Este formulário expirou. Abra-o de novo e tente outra vez.",
  sessionEnded: "A sua sessão terminou. Entre de novo.",
  signInExpired: "Esta entrada expirou ou começou em outro navegador. Comece de novo pela aplicação.",
  tooManyAttempts: "Tentativas falhadas demais. Tente de novo {when}.",
  tooManySignIns: "Foram iniciadas sessões demais a partir deste endereço. Tente de novo {when}.",
  wrongPassword: "A senha atual está errada.",
  passwordsDiffer: "A nova senha e a sua repetição são diferentes.",
  passwordLength: "A senha deve ter de 10 a 256 caracteres.",
  labelLength: "O rótulo deve ter de 1 a 128 caracteres.",
  redirectsNeeded: "Uma conta de usuário precisa de 1 a 10 endereços de retorno.",
  redirectsUnused: "Uma conta de serviço não pode ter endereços de retorno.",
  redirectAddress:
    "Um endereço de retorno deve ser absoluto, sem fragmento, curinga nem nome de usuário, e https (http só nesta máquina).",
  tooManyCredentials: "Um usuário pode ter no máximo 50 credenciais. Apague uma primeiro.",
  credentialNotFound: "Esta credencial já não existe.",
  ownersOnly: "Isto é só para os proprietários do servidor.",
  serverFailed: "O servidor falhou. O seu registo diz porquê.",
  databaseUnavailable: "A base de dados do servidor não responde. Tente novamente daqui a pouco.",
  requestTooLarge: "É demais para um só pedido.",
  nameLength: "O nome e o ambiente devem ter de 1 a 128 caracteres cada um.",
  clientIdPart:
    "A geografia e o nome do cliente devem ter de 1 a 64 caracteres de A-Z a-z 0-9 . _ - e começar por uma letra ou um algarismo.",
  servicesNeeded: "Escolha pelo menos um serviço.",
  scopeIds:
    "No máximo 100 âmbitos biométricos, cada um de 1 a 128 caracteres ASCII sem espaços, 4096 caracteres ao todo.",
  applicationNotFound: "Esta aplicação já não existe.",
  clientNotFound: "Este cliente já não existe.",
  geographyNotFound: "A aplicação não tem esta geografia.",
  clientExists: "A aplicação já tem um cliente com este nome nesta geografia.",
  lastClient: "O último cliente de uma aplicação não pode ser apagado. Apague antes a aplicação.",
  scopeNotBound: "Já nenhuma aplicação deste servidor está ligada a este âmbito.",
  profileNotFound: "Este perfil não existe neste âmbito.",
  sessionNotFound: "Esta sessão não existe neste âmbito.",
  referenceLength: "A referência deve ter no máximo 256 caracteres.",
};
